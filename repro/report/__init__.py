"""What a reader sees: printed numbers, claims, statistics and figures, from stored results; nothing here trains."""
