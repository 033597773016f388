"""Bootstrap your own latent: an encoder learns to predict what its momentum encoder makes of another view."""

TITLE = "BYOL"
TABLES = {"predictor": "with the predictor and without (an example: the printed number is made up)"}
