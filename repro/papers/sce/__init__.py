"""SCE, similarity contrastive estimation: soft targets between InfoNCE and ReSSL, on images."""

TITLE = "SCE"
TABLES = ("image_methods", "registered", "temperature_grid")
