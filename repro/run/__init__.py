"""How one run of a table becomes a row: train, store, evaluate, compare."""
