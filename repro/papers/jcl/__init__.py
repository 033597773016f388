"""JCL, joint contrastive learning with infinite possibilities: a bound on the loss of infinitely many positive keys."""

TITLE = "JCL"
TABLES = ("positive_keys", "similarity_variance")
