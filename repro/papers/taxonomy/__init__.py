"""Taxonomizing self-supervised learning for 3D action recognition: attractive and contrastive, encoder and decoder."""

TITLE = "taxonomy"
TABLES = ("taxonomy", "encoder_collapse")
