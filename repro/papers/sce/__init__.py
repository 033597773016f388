"""SCE, similarity contrastive estimation: soft targets between InfoNCE and ReSSL, on images."""

TITLE = "SCE"
TABLES = {
    "image_methods": "MoCo v2, ReSSL, SCE and JCL in one setting, beside random weights and supervised training",
    "registered": "twelve recipes on all of CIFAR-10, whose order was registered (docs/registered.md)",
    "temperature_grid": "SCE by the temperatures of query and key, beside ReSSL (supplement, Table 2)",
}
