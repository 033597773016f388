"""Active contrastive learning of audio-visual video representations: negatives across modalities, actively sampled."""

TITLE = "CM-ACC"
TABLES = (
    "cross_modal", "ohem_vs_active", "dictionary_size", "mutual_information", "transfer", "category_diversity",
)
