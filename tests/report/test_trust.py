"""What a table can be trusted for, against tables small enough to count by hand."""

import math

import numpy as np
import pytest
from pandas import DataFrame

from repro.report.levels import PAPER, QUICK
from repro.report.trust import Reproduced, at_a_glance, entry_names, reproduced

NAN = np.nan
NAMED = ("objectives", "method")


def table(**changes):
    """Three entries on NW-UCLA: the recipe of the paper with 3 seeds and 1, and one that is not run."""
    columns = {
        "objectives": ["random", "CE", "AD"],
        "ours": [50.0, 80.0, NAN], "std": [1.0, NAN, NAN], "n_seeds": [3, 1, 0], "published": [52.0, 75.0, 83.0],
        "difference": [-2.0, 5.0, NAN], "preset": "paper", "dataset": "ucla",
    }
    return DataFrame(columns | changes)


def test_a_table_at_a_glance():
    found, = at_a_glance(table())
    assert (found.dataset, found.preset, found.level) == ("ucla", "paper", PAPER)
    assert (found.entries, found.finished, found.seeds, found.enough) == (3, 2, (1, 3), 1)
    assert (found.compared, found.median, found.farthest) == (2, 3.5, ("CE", 5.0))
    assert found.seeds_in_words() == "1 to 3, 3 or more in 1 of 2 entries"
    assert found.distance_in_words() == "median 3.5 points, largest +5.0 (CE); 2 compared"


def test_entries_that_depart_are_not_held_against_the_print():
    some = table(departures=["", "select=best_on_test", NAN])
    found, = at_a_glance(some)
    assert found.level == PAPER and (found.compared, found.farthest) == (1, ("random", -2.0))
    assert reproduced([some], NAMED) is None  # of AD there is no number
    assert reproduced([table(departures=["", NAN, ""])], NAMED).entries == 1


def test_one_number_that_is_printed():
    found, = at_a_glance(table(difference=[NAN, -0.25, NAN]))
    assert found.distance_in_words() == "-0.2 points (CE), the one number printed"


@pytest.mark.parametrize(("changes", "words"), [
    ({"dataset": "synthetic", "difference": NAN}, "not comparable"),
    ({"preset": "quick"}, "not comparable"),
    ({"dataset": "ucla (subset)"}, "not comparable"),
    ({"usual": 60.0}, "not comparable"),
    ({"departures": "select=best_on_test"}, "not comparable"),
    ({"difference": NAN}, "nothing is printed"),
])
def test_nothing_to_compare_with(changes, words):
    found, = at_a_glance(table(**changes))
    assert found.compared == 0 and math.isnan(found.median) and found.farthest is None
    assert found.distance_in_words() == words


def test_nothing_is_run():
    found, = at_a_glance(table(ours=NAN, n_seeds=0, difference=NAN))
    assert (found.finished, found.seeds, found.enough) == (0, (0, 0), 0)
    assert found.seeds_in_words() == "0"


def test_presets_stand_apart_the_stronger_one_first():
    mixed = table(preset=["quick", "paper", "quick"])
    found = [(each.preset, each.level, each.entries) for each in at_a_glance(mixed)]
    assert found == [("paper", PAPER, 1), ("quick", QUICK, 2)]
    assert [each.level for each in at_a_glance(mixed.assign(usual=60.0))] == [QUICK, QUICK]
    assert [each.recipe_in_words() for each in at_a_glance(mixed)] == ["paper", "quick"]
    assert at_a_glance(mixed.assign(usual=60.0))[0].recipe_in_words() == "paper, changed as each entry says"


def test_a_table_of_two_data_sets_is_refused():
    with pytest.raises(ValueError, match="one dataset"):
        at_a_glance(table(dataset=["ucla", "ntu", "ntu"]))


def test_names_of_entries():
    assert entry_names(table()) == ["random", "CE", "AD"]
    changed = DataFrame({"objectives": ["CE", "AD"], "departures": ["layers=3", NAN], "ours": 1.0})
    assert entry_names(changed) == ["CE, layers=3", "AD"]
    depths = DataFrame({"layers": [1, 2], "method": "AE", "key_temperature": [0.05, NAN], "ours": 1.0})
    assert entry_names(depths) == ["layers 1, AE, key temperature 0.05", "layers 2, AE"]


def test_reproductions_of_all_tables_together():
    tables = [
        table(),                                               # CE alone counts: random is untrained, AD not run
        table(ours=[50.0, 81.0, 82.0], n_seeds=3, difference=[0.0, NAN, -1.0]),
        table(dataset="synthetic"), table(dataset="ucla (part)"), table(preset="quick"), table(usual=60.0),
    ]
    assert reproduced(tables, NAMED) == Reproduced(entries=3, enough=2, compared=2, median=3.0)


def test_a_sampler_called_random_is_trained():
    """CM-ACC's Table 3: random negatives train a network as active ones do."""
    columns = {
        "sampler": ["random", "ohem", "gradient"], "batch": 32, "target": "ucf101", "ours": [61.0, 50.0, 78.0],
        "std": 1.0, "n_seeds": 3, "published": [61.9, 50.2, 78.0], "difference": [-0.9, -0.2, 0.0],
        "preset": "paper", "dataset": "kinetics700",
    }
    found = reproduced([DataFrame(columns)], NAMED)
    assert (found.entries, found.compared) == (3, 3) and found.median == pytest.approx(0.2)


def test_random_initialisation_is_untrained_whatever_the_column_is_called():
    renamed = table().rename(columns={"objectives": "network"})
    assert reproduced([renamed], {"network", "method"}).entries == 1
    assert reproduced([renamed], {"method"}).entries == 2


def test_no_reproductions():
    assert reproduced([], NAMED) is None
    assert reproduced([table(preset="quick"), table(ours=NAN)], NAMED) is None
    only = reproduced([table(difference=NAN)], NAMED)
    assert (only.entries, only.compared) == (1, 0) and math.isnan(only.median)
