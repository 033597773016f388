import pytest

from repro.data.disk import read_csv
from repro.image import DATASETS
from repro.report.printed import PAPERS, as_printed, printed


def test_best_temperatures_are_the_row_maxima_of_the_grid():
    grid = printed("sce_temperature_long")
    best = grid.loc[grid.groupby("dataset")["top1"].idxmax()].reset_index(drop=True)
    assert best.to_dict() == printed("sce_best_temperature").sort_values("dataset", ignore_index=True).to_dict()


def test_numbers_and_printed_strings():
    assert printed("cmacc_table1").loc[3, "gain_UCF101"] == 2.2
    assert as_printed("cmacc_table1").loc[[0, 3], "gain_UCF101"].tolist() == ["", "+2.2"]
    assert as_printed("taxonomy").loc[5, "NTU_1layer"] == "67.0"
    assert printed("cmacc_table4").loc[1, "pretrain_size"] == "N/A"


def test_printed_gains_are_differences_of_the_rows_they_name():
    table = printed("cmacc_table1").set_index("id")
    for row in table.dropna(subset="gain_definition").itertuples():
        first, second = map(int, row.gain_definition.split("-"))
        for target in ("UCF101", "HMDB51", "ESC50"):
            gain = table.loc[first, target] - table.loc[second, target]
            assert gain == pytest.approx(getattr(row, f"gain_{target}"))


@pytest.mark.parametrize("name", sorted(path.stem for path in PAPERS.glob("*/printed/*.csv")))
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


@pytest.mark.parametrize("text", ["method,accuracy\nnear,91,3\nsce,88,0\n", "method,accuracy\nnear\n"])
def test_a_line_of_more_or_fewer_values_is_refused_and_not_shifted(tmp_path, text):
    path = tmp_path / "accuracy.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"accuracy\.csv cannot be read \(line 2: [13] values, expected 2\); mend it"):
        read_csv(path)


def test_an_unknown_name_names_the_others():
    with pytest.raises(ValueError, match=r"did you mean 'taxonomy'.*taxonomi'.*cmacc_table1"):
        printed("taxonomi")
