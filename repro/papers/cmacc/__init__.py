"""Active contrastive learning of audio-visual video representations: negatives across modalities, actively sampled."""

TITLE = "CM-ACC"
TABLES = {
    "cross_modal": "within or across modalities, extra layer, active selection (Tables 1 and 2)",
    "ohem_vs_active": "random, least confident and active negatives by their number (Table 3)",
    "dictionary_size": "SMoCo, XMoCo and CM-ACC by the size of the dictionary (Fig. 3b)",
    "mutual_information": "characters read from grids, by the information pairs share (Fig. 3a)",
    "transfer": "fine-tuned elsewhere, every official split (Tables 4 to 6)",
    "category_diversity": "categories among the negatives selected in a step (Figs. 2 and 4)",
}
