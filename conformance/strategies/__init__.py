"""Claims about the four strategies side by side."""
