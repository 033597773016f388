"""JCL, joint contrastive learning with infinite possibilities: a bound on the loss of infinitely many positive keys."""

TITLE = "JCL"
TABLES = {
    "positive_keys": "JCL by positive keys, the weight of their covariance, and temperature (supplement, Fig. M.2)",
    "similarity_variance": "features of JCL with nine positive keys and of MoCo v2 (supplement, Fig. M.3)",
}
