"""How one cell of a table becomes a row: train, store, evaluate, compare."""
