"""Finished cells as evidence, from made-up rows of cells.csv and logs."""

import functools
import math

import pytest
from made_up_cells import PART, image, placed, skeleton, sounding
from made_up_results import write_log
from pandas import DataFrame

from repro import papers
from repro.report.evidence import Evidence, measured
from repro.report.verdicts import EMBEDDED, FAILS, HOLDS, NOT_RUN, PAPER, QUICK, UNDECIDED, above, reproduced


@pytest.fixture
def evidence(tmp_path):
    return lambda *rows: Evidence(placed(*rows), tmp_path, {})


def test_settings_come_by_how_far_they_carry_and_without_smoke_runs(evidence):
    found = evidence(skeleton("CE", dataset="synthetic", preset="quick"), skeleton("CE", preset="quick"),
                     skeleton("CE"), skeleton("CE", dataset="synthetic", preset="smoke"), image("moco"))
    assert [(each.dataset, each.preset) for each in found.settings("taxonomy")] == [
        ("ucla", "paper"), ("ucla", "quick"), ("synthetic", "quick")]
    assert [each.dataset for each in found.settings("taxonomy", "image_methods")][1:3] == [PART, "ucla"]
    assert found.settings("positive_keys") == []
    assert found.setting("ntu", "paper", "taxonomy").values("taxonomy").empty


def test_values_are_those_of_the_recipe_unless_a_departure_is_named(evidence):
    setting, = evidence(
        skeleton("CE", 70.0), skeleton("CE", 72.0, seed=3), skeleton("AD", 60.0), skeleton("CE", 1.0, layers=3),
        skeleton("CE", 2.0, layers=3, learning_rate=0.05),
    ).settings("taxonomy")
    assert setting.values("taxonomy", objectives="CE").to_dict() == {0: 70.0, 3: 72.0}
    assert setting.values("taxonomy", "knn1", objectives="AD").to_dict() == {0: 59.0}
    assert setting.values("taxonomy", departing={"layers": 3}, objectives="CE").to_dict() == {0: 1.0}
    assert setting.values("taxonomy", departing={"layers": 3, "learning_rate": 0.05}).to_dict() == {0: 2.0}
    assert setting.values("taxonomy", objectives="AE").empty and setting.values("taxonomy", "loss").empty
    assert setting.values("taxonomy", colour="red").empty and setting.values("temperature_grid").empty
    setting, = evidence(skeleton("AE", 40.0, layers=2), skeleton("AE", 50.0)).settings("encoder_collapse")
    assert setting.values("encoder_collapse", layers=2).to_dict() == {0: 40.0}  # what a table varies is no departure


def test_a_cell_that_lacks_a_measure_hides_none_that_has_it(evidence):
    kept = {"dataset": "kinetics_sound", "preset": "paper"}
    rows = [sounding("xmoco", {target: value}, targets=target, **kept)
            for target, value in (("esc50", 60.0), ("ucf101", 70.0))]
    for each in (rows, rows[::-1]):
        setting, = evidence(*each).settings("cross_modal")
        assert setting.values("cross_modal", "esc50", method="xmoco").to_dict() == {0: 60.0}
        assert setting.values("cross_modal", "ucf101", method="xmoco").to_dict() == {0: 70.0}


def test_deviations_are_pooled_over_trained_entries_and_tables(evidence):
    rows = [skeleton("random", value, seed=seed) for seed, value in enumerate((10.0, 20.0))]
    rows += [skeleton("CE", value, seed=seed) for seed, value in enumerate((70.0, 72.0, 74.0))]
    rows += [skeleton("AE", 50.0), skeleton("AE", 90.0, layers=2), skeleton("AE", 94.0, layers=2, seed=1)]
    setting, = evidence(*rows).settings("taxonomy", "encoder_collapse")
    assert setting.deviation("taxonomy") == pytest.approx((2.0, 2))
    assert setting.deviation("taxonomy", of="random") == pytest.approx((math.sqrt(50), 1))
    assert setting.deviation("taxonomy", "encoder_collapse") == pytest.approx((math.sqrt(16 / 3), 3))
    assert math.isnan(setting.deviation("taxonomy", measure="loss").value)
    estimate = setting.difference("taxonomy", {"objectives": "CE"}, {"objectives": "AE"})
    assert estimate[:3] == pytest.approx((22.0, 2 * math.sqrt(1 + 1 / 3), 2))
    estimate = setting.from_printed("taxonomy", 71.0, objectives="CE")
    assert estimate[:3] == pytest.approx((1.0, 2 * math.sqrt(4 / 3), 2))


def test_targets_are_those_with_results(evidence):
    clips = {"synthetic_video": 60.0, "synthetic_audio": 70.0}
    setting, = evidence(sounding("xmoco", clips)).settings("cross_modal")
    assert setting.targets("cross_modal") == ["synthetic_audio", "synthetic_video"]
    assert setting.targets("transfer") == []


def compared(setting):
    return {"CE over AD": setting.difference("taxonomy", {"objectives": "CE"}, {"objectives": "AD"})}


def pair(first, second, seeds=3, **changes):
    return [skeleton(name, value + 0.1 * seed * (name == "CE"), seed=seed, **changes) for seed in range(seeds)
            for name, value in (("CE", first), ("AD", second))]


CHECK = measured(("taxonomy",), compared, above)


def test_the_verdict_is_that_of_the_cells_that_carry_furthest(evidence):
    embedded = pair(80.0, 60.0, dataset="synthetic", preset="quick")
    assert CHECK(evidence())[:2] == (NOT_RUN, "")
    assert CHECK(evidence(*embedded))[:2] == (HOLDS, EMBEDDED)
    quick = [*embedded, *pair(60.0, 80.0, preset="quick")]
    assert CHECK(evidence(*quick))[:2] == (FAILS, QUICK)
    found = CHECK(evidence(*quick, *pair(70.0, 70.0)))
    assert found[:2] == (UNDECIDED, PAPER)
    assert found.evidence.startswith("ucla, paper recipe: CE over AD +0.10") and "3 pairs" in found.evidence
    assert found.evidence.endswith("Also ucla, quick recipe: fails; synthetic, quick recipe: holds")


def test_one_seed_decides_nothing_by_itself(evidence):
    assert CHECK(evidence(*pair(90.0, 10.0, seeds=1)))[0] == UNDECIDED
    repeated = [skeleton("AE", value, seed=seed) for seed, value in enumerate((50.0, 51.0, 52.0, 50.5, 51.5))]
    assert CHECK(evidence(*pair(90.0, 10.0, seeds=1), *repeated))[0] == HOLDS


def test_only_half_of_a_comparison_is_not_run(evidence):
    found = CHECK(evidence(skeleton("CE", 80.0)))
    assert found == (NOT_RUN, "", "none of the cells compared is finished (taxonomy)")  # others are


def test_only_the_data_sets_concerned_count_and_embedded_ones(evidence):
    check = measured(("taxonomy",), compared, above, datasets=("ucla",))
    assert check(evidence(*pair(80.0, 60.0, dataset="ntu")))[0] == NOT_RUN
    assert check(evidence(*pair(80.0, 60.0, dataset="synthetic", preset="quick")))[0] == HOLDS


def test_no_verdict_on_printed_numbers_from_quick_or_embedded_cells(evidence):
    judge = functools.partial(reproduced, widest=5.0)

    def compare(setting):
        return {"CE": setting.from_printed("taxonomy", 83.73, objectives="CE")}

    check = measured(("taxonomy",), compare, judge, datasets=("ucla",), numbers=True)
    def near(**changes):
        return [skeleton("CE", 83.0 + seed, seed=seed, **changes) for seed in range(3)]

    for dataset, preset in (("ucla", "quick"), ("synthetic", "quick"), ("synthetic", "paper")):
        found = check(evidence(*near(dataset=dataset, preset=preset)))
        assert found[:2] == (NOT_RUN, "") and found.evidence.endswith("(taxonomy; ucla; paper recipe on real data)")
    assert check(evidence(*near()))[:2] == (HOLDS, PAPER)


def test_logs_come_by_how_far_they_carry(tmp_path):
    for dataset, preset in (("digits", "quick"), ("cifar10", "paper"), (PART, "quick")):
        log = DataFrame({"keys": [1], "dataset": dataset, "preset": preset})
        write_log("sampled_keys", tmp_path, log, f"{dataset.split()[0]}{preset}")
    evidence = Evidence({}, tmp_path, papers.logs())
    found = evidence.logs("sampled_keys")
    assert [log["dataset"].item() for log in found] == ["cifar10", PART, "digits"]
    assert evidence.logs("category_curves") == []


@pytest.mark.parametrize("damage", [
    lambda text: "", lambda text: text.partition("\n")[0], lambda text: text[:-8],
    lambda text: text.replace(",0", ",", 1), lambda text: text.replace("keys", "number"),
])
def test_a_damaged_log_is_named_and_decides_nothing(tmp_path, damage):
    write_log("sampled_keys", tmp_path, DataFrame({"keys": [1], "dataset": "digits", "preset": "quick"}))
    path = tmp_path / "sampled_keys_part.csv"
    path.write_text(damage(path.read_text()))
    with pytest.raises(ValueError, match=r"sampled_keys_part\.csv cannot be read \(.+\); restore it from version"):
        Evidence({}, tmp_path, papers.logs()).logs("sampled_keys")


def test_figures_are_found_by_the_beginning_of_their_names(tmp_path):
    for name in ("taxonomy_ucla.png", "taxonomy_ucla.svg", "taxonomy_ucla_3layers.png", "glm_forest.png", "other.png"):
        (tmp_path / name).touch()
    found = Evidence({}, tmp_path, {}).figures(("glm_forest", "taxonomy"))
    assert found == ["glm_forest.png", "taxonomy_ucla.png", "taxonomy_ucla_3layers.png"]
    assert Evidence({}, tmp_path, {}).figures(("taxonomy_ucla", "none")) == ["taxonomy_ucla.png"]


def test_a_cell_of_two_tables_counts_once_among_deviations(evidence):
    setting, = evidence(*(skeleton("AE", value, seed=seed) for seed, value in enumerate((50.0, 54.0))),
                        skeleton("CE"), skeleton("AE", layers=2)).settings("taxonomy", "encoder_collapse")
    assert setting.deviation("taxonomy", "encoder_collapse") == pytest.approx((math.sqrt(8), 1))


def test_versions_of_the_training_are_not_compared(evidence):
    found = evidence(skeleton("CE", 70.0), skeleton("AD", 60.0), skeleton("AE", 50.0),
                     skeleton("CE", 90.0, seed=1, version=2))
    newest, = (setting for setting in found.settings("taxonomy") if len(setting.rows("taxonomy")) == 1)
    fullest = found.setting("ucla", "paper", "taxonomy")
    assert fullest.values("taxonomy", objectives="CE").to_dict() == {0: 70.0}
    assert newest.values("taxonomy", objectives="CE").to_dict() == {1: 90.0}
    assert newest.difference("taxonomy", {"objectives": "CE"}, {"objectives": "AD"}) is None
    assert (str(fullest), str(newest)) == ("ucla, paper recipe, version 1", "ucla, paper recipe, version 2")
    alone, = evidence(skeleton("CE", 70.0)).settings("taxonomy")
    assert str(alone) == "ucla, paper recipe"


def test_of_versions_that_which_compares_most_has_the_verdict_then_the_newest(evidence):
    older, newer = pair(80.0, 70.0), pair(60.0, 70.0, version=2)
    more = [skeleton("AE", 50.0), skeleton("AE+CE", 50.0)]  # which this comparison does not ask for
    assert CHECK(evidence(*older, *more, *newer)).verdict == FAILS
    assert CHECK(evidence(*older, *newer[::2])).verdict == HOLDS  # of the newer one side alone
    assert CHECK(evidence(*older, *newer[:4])).verdict == HOLDS   # and fewer seeds
    single = [older[0], older[-1], *(skeleton("AE", 50.0 + seed, seed=seed) for seed in range(9))]
    assert CHECK(evidence(*single, *newer)).verdict == FAILS  # the older's error is that of other cells


def test_random_initialisation_is_judged_by_how_far_it_scatters_itself(evidence):
    rows = [skeleton("random", value, seed=seed, layers=layers) for layers, seed, value in
            ((1, 0, 50.0), (1, 1, 51.0), (2, 2, 56.0))]
    rows += [skeleton("AE", value, seed=seed) for seed, value in enumerate((20.0, 60.0))]
    setting, = evidence(*rows).settings("encoder_collapse")
    sides = ({"objectives": "random", "layers": layers} for layers in (2, 1))
    estimate = setting.difference("encoder_collapse", *sides)
    assert estimate[:3] == pytest.approx((5.5, math.sqrt(0.5) * math.sqrt(1 + 1 / 2), 1))
