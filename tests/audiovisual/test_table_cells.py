"""Cells of CM-ACC's tables: which there are, with which recipes, and what their keys depend on."""

import itertools

import pytest
from audiovisual_layouts import EMBEDDED, LAYOUTS, laid_out, results
from made_up_pairs import grids, made_up

from repro.audiovisual import MODALITIES, cell, table_cells, tables
from repro.audiovisual.data import CHARACTERS
from repro.audiovisual.members import members
from repro.audiovisual.pretrain import VERSION
from repro.audiovisual.recipe import VARIANTS, paper, quick

pytestmark = pytest.mark.usefixtures("one_thread", "runs")


def test_the_approaches_of_the_printed_tables(any_data):
    cells = tables.cross_modal_cells("kinetics_sound")
    expected = [
        ("scratch", {}), ("supervised", {}), ("smoco", {}), ("xmoco", {"extra_layer": False}), ("xmoco", {}),
        ("cmacc", {"extra_layer": False}), ("cmacc", {"sampler": "feature"}), ("cmacc", {}),
    ]
    assert [each.recipe for each in cells] == [paper("kinetics_sound", method, **given) for method, given in expected]
    for each in cells:
        assert (each.table, each.preset, each.dataset, each.seed, each.version) == (
            "cross_modal", "paper", "kinetics_sound", 0, VERSION
        )
        assert each.recipe.split == 1 and each.recipe.targets == "ucf101,hmdb51,esc50"


def test_every_approach_can_be_asked_for():
    for name, (_, method, given) in table_cells.APPROACHES.items():
        recipe = quick("synthetic", method, **given)
        assert (recipe.method, given) == (name.split("_")[0], given)
    assert table_cells.APPROACHES["cmacc_released"][2] == {"sampler": "released"}
    titles = [title for title, _, _ in table_cells.APPROACHES.values()]
    assert len(set(titles)) == len(titles)


def test_samplers_by_batch(any_data):
    cells = tables.ohem_vs_active_cells("kinetics700")
    found = [(each.recipe.sampler, each.recipe.batch, each.recipe.dictionary, each.recipe.pool) for each in cells]
    assert found == [(sampler, batch, 30 * batch, 300 * batch)
                     for sampler in ("random", "ohem", "gradient") for batch in (32, 64, 128)]
    assert {each.recipe.method for each in cells} == {"cmacc"}
    assert cells[0].entry == "cmacc, sampler=random, batch=32, targets=ucf101,hmdb51,esc50"


@pytest.mark.parametrize(("dataset", "sizes"), [("synthetic", [64, 256, 1024]),
                                               ("kinetics700", [128, 512, 2048, 8192, 32768])])
def test_methods_by_size_of_the_dictionary(any_data, dataset, sizes):
    cells = tables.dictionary_size_cells(dataset)
    found = [(each.recipe.method, each.recipe.dictionary) for each in cells]
    assert found == [(method, size) for method in ("smoco", "xmoco", "cmacc") for size in sizes]


@pytest.mark.parametrize("dataset", CHARACTERS)
def test_methods_by_number_of_characters(any_data, dataset):
    cells = tables.mutual_information_cells(dataset)
    found = [(each.recipe.method, each.recipe.characters) for each in cells]
    assert found == [(method, number) for method in ("smoco", "xmoco", "cmacc") for number in range(1, 10)]
    assert {each.preset for each in cells} == {"quick" if dataset == "multidigits" else "paper"}
    assert {each.recipe.pairs for each in cells} == {10_000 if dataset == "multidigits" else 50_000}


def test_transfer_is_to_all_splits(any_data):
    first, second = tables.transfer_cells("audioset", trunks="r3d18,r2plus1d18")
    assert first.recipe == paper("audioset", "cmacc", split=0)
    assert second.recipe == paper("audioset", "cmacc", split=0, video_trunk="r2plus1d18")
    assert second.entry == "cmacc, video_trunk=r2plus1d18, split=0, targets=ucf101,hmdb51,esc50"
    chosen, = tables.transfer_cells("audioset", targets="esc50, ucf101", split="2", methods="smoco")
    assert (chosen.recipe.targets, chosen.recipe.split, chosen.recipe.method) == ("esc50,ucf101", 2, "smoco")


def test_clips_to_pre_train_on_leave_scratch_its_usual_cell(any_data):
    scratch, cmacc = tables.transfer_cells("audioset", methods="scratch,cmacc", clips="100")
    usual = tables.transfer_cells("audioset", methods="scratch,cmacc")
    assert scratch == usual[0]
    assert cmacc.recipe == usual[1].recipe.replace(clips=100) and cmacc.entry == f"{usual[1].entry}, clips=100"


@pytest.mark.parametrize(("dataset", "targets"), [("ucf101", "auto"), ("hmdb51", "ucf101,hmdb51"), ("esc50", "auto")])
def test_one_split_of_what_is_pre_trained_on(any_data, dataset, targets):
    chosen, = tables.transfer_cells(dataset, targets=targets, split=2)
    assert chosen.recipe.split == 2
    assert len(tables.transfer_cells("synthetic", methods="smoco,cmacc")) == 2  # has one split


@pytest.mark.parametrize("table", ["cross_modal", "ohem_vs_active", "dictionary_size", "transfer"])
def test_targets_can_be_chosen_wherever_encoders_are_fine_tuned(any_data, table):
    make = tables.TABLES[table].cells
    usual, cells = make("ucf101", split=1) if table == "transfer" else make("ucf101"), make(
        "ucf101", targets="ucf101", **({"split": 1} if table == "transfer" else {})
    )
    assert {each.recipe.targets for each in usual} == {"ucf101,hmdb51"}
    assert [each.recipe for each in cells] == [each.recipe.replace(targets="ucf101") for each in usual]
    frame = laid_out(table, cells)
    assert list(frame.columns) == LAYOUTS[table]  # that fewer targets were asked for is no departure
    assert set(frame["target"]) == {"ucf101"}


@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity"])
def test_redundancy_of_the_embedded_clips(any_data, table):
    cells = tables.TABLES[table].cells("synthetic", redundancy="0.9")
    assert {each.recipe.redundancy for each in cells} == {0.9}
    assert set(laid_out(table, cells)["departures"]) == {"redundancy=0.9"}
    plain = tables.TABLES[table].cells("synthetic", redundancy=0.5)
    assert [each.key for each in plain] == [each.key for each in tables.TABLES[table].cells("synthetic")]


@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity"])
@pytest.mark.parametrize(("dataset", "preset", "expected"), [
    ("synthetic", "quick", (32, 64, 128)), ("kinetics700", "paper", (32, 64, 128)), ("ucf101", "quick", (4, 8, 16)),
    ("ucf101", "smoke", (4, 8, 16)), ("synthetic", "smoke", (32, 64, 128)),
])
def test_batches_fit_what_there_is_to_select_from(any_data, table, dataset, preset, expected):
    cells = tables.TABLES[table].cells(dataset, preset=preset)
    assert tuple(dict.fromkeys(each.recipe.batch for each in cells)) == expected


@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity", "dictionary_size", "cross_modal"])
def test_quick_tables_take_a_set_of_some_dozens(any_data, monkeypatch, table):
    """As many as of a sample of UCF101 have sound: a batch is left to select in every cell."""
    monkeypatch.setattr(cell, "data_of", lambda recipe: made_up(pretrain=33))
    monkeypatch.setattr(cell, "members", lambda recipe, data: members(recipe.replace(size=8), data))
    assert tables.TABLES[table].cells("ucf101", preset="quick", subset=True)


@pytest.mark.parametrize("preset", ["quick", "smoke"])
@pytest.mark.parametrize("table", ["ohem_vs_active", "category_diversity", "dictionary_size", "cross_modal"])
def test_usual_choices_fit_the_embedded_clips(any_data, monkeypatch, table, preset):
    monkeypatch.setattr(cell, "data_of", lambda recipe: made_up(pretrain=2000))
    monkeypatch.setattr(cell, "members", lambda recipe, data: members(recipe.replace(size=8), data))
    assert tables.TABLES[table].cells("synthetic", preset=preset)


def test_coverage_needs_no_targets(any_data):
    cells = tables.category_diversity_cells("ucf101")
    found = [(each.recipe.sampler, each.recipe.batch) for each in cells]
    assert found == list(itertools.product(("random", "ohem", "feature", "gradient"), (32, 64, 128)))
    assert {(each.recipe.iterations, each.recipe.targets) for each in cells} == {(300, "")}


@pytest.mark.parametrize("table", LAYOUTS)
@pytest.mark.parametrize("real", [False, True])
def test_auto_is_the_papers_recipe_on_real_data_and_a_quick_one_on_embedded_data(any_data, table, real):
    real_name = "multiomniglot" if table == "mutual_information" else "kinetics700"
    cells = tables.TABLES[table].cells(real_name if real else EMBEDDED[table])
    assert {each.preset for each in cells} == {"paper" if real else "quick"}
    assert {each.table for each in cells} == {table}


@pytest.mark.parametrize("table", LAYOUTS)
def test_entries_and_keys_tell_cells_apart(any_data, table):
    for dataset in ("multidigits", "multiomniglot") if table == "mutual_information" else ("synthetic", "kinetics700"):
        cells = tables.TABLES[table].cells(dataset, seeds="0,3")
        entries = [each.entry for each in cells]
        half = len(cells) // 2
        assert entries[:half] == entries[half:] and len(set(entries)) == half
        assert [each.seed for each in cells] == [0] * half + [3] * half
        assert len({each.key for each in cells}) == len(cells)


@pytest.mark.parametrize("table", LAYOUTS)
def test_choices_reach_every_recipe(any_data, table):
    choices = {"seeds": "4,7", "precision": "bfloat16", "variant": "own_kept"}
    expected = {"precision": "bfloat16", "own_excluded": False}
    if table != "mutual_information":
        choices |= {"subset": True}
        expected |= {"subset": True}
    dataset = "multiomniglot" if table == "mutual_information" else "kinetics700"
    usual = tables.TABLES[table].cells(dataset)
    cells = tables.TABLES[table].cells(dataset, **choices)
    assert [each.seed for each in cells] == [4] * len(usual) + [7] * len(usual)
    for each, plain in zip(cells, usual * 2, strict=True):
        used = {name: value for name, value in expected.items() if plain.recipe.uses(name)}
        assert each.recipe == plain.recipe.replace(**used)
        assert each.dataset == dataset + (" (subset)" if "subset" in choices else "")
        told = [f"{name}={value}" for name, value in used.items() if name != "subset"]
        assert each.entry == ", ".join([plain.entry, *reversed(told)])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("table", LAYOUTS)
def test_a_variant_reaches_the_recipes_or_is_refused_where_the_table_varies_the_same(any_data, table, variant):
    make, changes = tables.TABLES[table].cells, VARIANTS[variant]
    usual = make(EMBEDDED[table])
    if changes.keys() & set(tables.VARIED[table]):
        with pytest.raises(ValueError, match=rf"variant='{variant}' is not one of: none, unit_length"):
            make(EMBEDDED[table], variant=variant)
        return
    if variant in ("whole_batch", "unit_length", "renewed_keys"):  # so are the quick recipes anyway
        with pytest.raises(ValueError, match=f"variant='{variant}' changes nothing in the training of"):
            make(EMBEDDED[table], variant=variant)
        usual, cells = (make(EMBEDDED[table], preset="paper", variant=name) for name in ("none", variant))
    else:
        cells = make(EMBEDDED[table], variant=variant)
    concerned = [any(plain.recipe.uses(name) for name in changes) for plain in usual]
    expected = [plain.recipe.replace(**changes) if whose else plain.recipe
                for plain, whose in zip(usual, concerned, strict=True)]
    assert [each.recipe for each in cells] == expected
    assert len({each.entry for each in cells} - {plain.entry for plain in usual}) == sum(concerned) > 0


# ---------------------------------------------------------------------------------------------- grids of characters


@pytest.mark.parametrize("preset", ["paper", "quick", "smoke"])
@pytest.mark.parametrize("table", LAYOUTS)
def test_every_table_is_also_on_grids_of_characters(any_data, monkeypatch, table, preset):
    monkeypatch.setattr(cell, "data_of", lambda recipe: grids(train=recipe.pairs, test=9, held_out=9))
    monkeypatch.setattr(cell, "members", members)
    cells = tables.TABLES[table].cells("multidigits", preset=preset)
    assert {(each.recipe.targets, each.recipe.split) for each in cells} == {("characters", 1)}
    frame = laid_out(table, cells)
    if table == "category_diversity":
        assert set(frame["target"]) == set(MODALITIES)
        return
    found = results(cells)
    assert set(frame["target"]) == {"characters"} and frame["ours"].tolist() == found["linear"].tolist()
    assert frame["linear_held_out"].tolist() == found["linear_held_out"].tolist()


def test_the_same_cell_has_one_key_in_every_table(any_data):
    chosen = {"preset": "quick", "characters": "3", "distinct": "100", "frequency": "zipf", "redrawn": "true"}
    same = [
        tables.cross_modal_cells("multidigits", approaches="cmacc", **chosen),
        tables.ohem_vs_active_cells("multidigits", samplers="gradient", batches="128", **chosen),
        tables.dictionary_size_cells("multidigits", methods="cmacc", dictionaries="1024", **chosen),
        tables.mutual_information_cells("multidigits", methods="cmacc", **chosen),
        tables.transfer_cells("multidigits", **chosen),
        tables.category_diversity_cells("multidigits", samplers="gradient", batches="128", iterations="624", **chosen),
    ]
    assert len({each.key for cells in same for each in cells}) == 1 and [len(cells) for cells in same] == [1] * 6


def test_fields_of_grids_sweep_where_a_method_uses_them(any_data):
    cells = tables.cross_modal_cells("multiomniglot", approaches="scratch,supervised,smoco,xmoco", preset="quick",
                                     view="affine,characters", redrawn="false,true", categories="101")
    found = [(each.recipe.method, each.recipe.view, each.recipe.redrawn) for each in cells]
    assert found == [
        ("scratch", "affine", False), ("supervised", "affine", False), ("supervised", "affine", True),
        ("smoco", "affine", False), ("smoco", "affine", True), ("smoco", "characters", False),
        ("smoco", "characters", True), ("xmoco", "affine", False), ("xmoco", "affine", True),
    ]
    assert {each.recipe.categories for each in cells} == {101}


@pytest.mark.parametrize(("table", "choices", "message"), [
    ("cross_modal", {"dataset": "synthetic", "distinct": 5}, "distinct=5 changes nothing of scratch, supervised"),
    ("cross_modal", {"dataset": "multidigits", "redundancy": 0.5}, "redundancy=0.5 changes nothing of"),
    ("cross_modal", {"dataset": "multidigits", "targets": "esc50"}, "targets='esc50' is not one of: auto, characters"),
    ("transfer", {"dataset": "multidigits", "trunks": "r3d18"}, "trunks='r3d18' is not one of: auto"),
    ("transfer", {"dataset": "multidigits", "split": 2}, "split='2' is not one of: 0"),
    ("ohem_vs_active", {"dataset": "multidigits", "view": "drawing"}, "view='drawing' changes nothing of cmacc; smoco"),
    ("ohem_vs_active", {"dataset": "synthetic", "samplers": "random", "posterior_temperature": 0.3},
     "posterior_temperature=0.3 changes nothing of cmacc"),
])
def test_fields_that_change_nothing_are_refused(any_data, table, choices, message):
    with pytest.raises(ValueError, match=message):
        tables.TABLES[table].cells(**choices)


# ---------------------------------------------------------------------------------------------- keys


def test_a_key_depends_on_the_targets_data(any_data, monkeypatch):
    before = tables.cross_modal_cells("kinetics_sound", approaches="cmacc")[0]
    plain = tables.category_diversity_cells("kinetics_sound", samplers="random", batches=32)[0]
    assert plain.digest == "digest of kinetics_sound" != before.digest
    target = cell.target_of

    def other(recipe, name, split):
        found = target(recipe, name, split)
        found.digest += " other" * (name == "hmdb51")
        return found

    monkeypatch.setattr(cell, "target_of", other)
    after = tables.cross_modal_cells("kinetics_sound", approaches="cmacc")[0]
    assert after.key != before.key and after.recipe == before.recipe


def test_the_version_of_the_pretrainer_is_part_of_every_key(any_data, monkeypatch):
    before = tables.transfer_cells("audioset")[0]
    monkeypatch.setattr(table_cells, "VERSION", VERSION + 1)
    assert tables.transfer_cells("audioset")[0].key != before.key


def test_what_targets_are_read_for_a_cell(any_data, monkeypatch):
    asked, target = [], cell.target_of
    monkeypatch.setattr(cell, "target_of", lambda *given: asked.append(given[1:]) or target(*given))
    tables.transfer_cells("audioset")
    assert asked == [*(("ucf101", split) for split in (1, 2, 3)), *(("hmdb51", split) for split in (1, 2, 3)),
                     *(("esc50", split) for split in (1, 2, 3, 4, 5))]
