"""Claims about the stages of ZeRO."""
