"""Claims about pipelines."""
