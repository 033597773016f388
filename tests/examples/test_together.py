"""All changes that the page shows live in one copy, and every command there knows them."""

import re

from project_copy import copied, run, walk

from repro.data import manifest

COMMANDS = """
run("recipe", "taxonomy", "--dataset", "utd_mhad", "--objectives", "AE+UE", "--encoder", "graph", "--neighbours", "9")
run("recipe", "image_methods", "--dataset", "svhn", "--method", "vicreg", "--query-view", "byol")
run("recipe", "ohem_vs_active", "--sampler", "margin")
run("recipe", "predictor", "--method", "byol", "--key-view", "byol")
"""


def test_all_walks_are_applied_one_after_the_other(tmp_path):
    page = (manifest.project_root() / "docs" / "add_your_own.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    titles = [title for title, text in sections if "```diff" in text]
    copy = copied(tmp_path)
    assert len(titles) >= 9 and all(walk(title, copy) for title in titles)
    assert all("chosen here" in told or "margin" in told for told in run(copy, COMMANDS).values())
