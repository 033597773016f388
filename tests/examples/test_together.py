"""All changes live in one copy, and every command there knows them."""

from project_copy import changes, copied, run, walk

COMMANDS = """
run("recipe", "taxonomy", "--dataset", "utd_mhad", "--objectives", "AE+UE", "--encoder", "graph")
run("recipe", "image_methods", "--dataset", "svhn", "--method", "vicreg")
run("recipe", "ohem_vs_active", "--sampler", "margin")
run("recipe", "predictor", "--method", "byol")
"""


def test_all_walks_are_applied_one_after_the_other(tmp_path):
    copy, titles = copied(tmp_path), changes()
    assert len(titles) == 7 and all(walk(title, copy) for title in titles)
    assert all("chosen here" in told or "margin" in told for told in run(copy, COMMANDS).values())
