"""A reproducible companion to four papers on self-supervised learning."""
