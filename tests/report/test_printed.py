import pytest

from repro.image import DATASETS
from repro.report.printed import PAPERS, as_printed, names, printed


def test_best_temperatures_are_the_row_maxima_of_the_grid():
    grid = printed("sce_temperature_long")
    best = grid.loc[grid.groupby("dataset")["top1"].idxmax()].reset_index(drop=True)
    assert best.to_dict() == printed("sce_best_temperature").sort_values("dataset", ignore_index=True).to_dict()


def test_numbers_and_printed_strings():
    assert printed("cmacc_table1").loc[3, "gain_UCF101"] == 2.2
    assert as_printed("cmacc_table1").loc[[0, 3], "gain_UCF101"].tolist() == ["", "+2.2"]
    assert as_printed("taxonomy").loc[5, "NTU_1layer"] == "67.0"
    assert printed("cmacc_table4").loc[1, "pretrain_size"] == "N/A"


@pytest.mark.parametrize("name", names())
def test_both_forms_agree(name):
    numbers, strings = printed(name), as_printed(name)
    assert numbers.shape == strings.shape and len(numbers) > 0
    for column in numbers.select_dtypes("number"):
        written = strings[column] != ""
        assert strings.loc[written, column].astype(float).tolist() == numbers.loc[written, column].tolist()
        assert numbers.loc[~written, column].isna().all()


def test_imagenet100_lists_hold_the_same_hundred_classes():
    folder = PAPERS / "sce" / "printed"
    order, alphabet = ((folder / f"imagenet100_classes{suffix}.txt").read_text().split() for suffix in ("", "_sorted"))
    assert len(set(order)) == 100 and sorted(order) == alphabet
    assert DATASETS["imagenet100"].images.names == tuple(order)


def test_an_unknown_name_names_the_others():
    with pytest.raises(ValueError, match=r"taxonomi.*cmacc_table1.*did you mean 'taxonomy'"):
        printed("taxonomi")
