"""Taxonomizing self-supervised learning for 3D action recognition: attractive and contrastive, encoder and decoder."""

TITLE = "taxonomy"
TABLES = {
    "taxonomy": "fifteen objectives under a linear probe (supplement, Table 1)",
    "encoder_collapse": "random initialisation against the attractive encoder, by depth (supplement, Table 2)",
}
