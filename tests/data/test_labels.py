import pytest
import torch

from repro.data.labels import check_counts, check_labels

TRAIN, TEST = torch.tensor([True, True, False, False]), torch.tensor([False, False, True, False])


@pytest.mark.parametrize(("labels", "classes", "least"), [
    ([0, 1, 2, 0], 3, 0), ([0, 0, 0, 0], 9, 0), ([0, 1, -1, -1], 2, -1),  # most classes are empty in the second
])
def test_labels_of_classes_pass_empty_ones_too(labels, classes, least):
    check_labels("things", torch.tensor(labels), classes, TRAIN, TEST, least)


@pytest.mark.parametrize(("labels", "least", "message"), [
    ([0, 1, 3, 0], 0, "things: label 3 should be from 0 to 2"), ([0, 1, -1, 0], 0, "label -1 should be from 0 to 2"),
    ([0, 1, -2, 0], -1, "label -2 should be from -1 to 2"), ([2**40, 0, 0, 0], -1, f"label {2**40} should be from"),
])
def test_a_label_without_a_class_is_refused(labels, least, message):
    with pytest.raises(ValueError, match=message):
        check_labels("things", torch.tensor(labels), 3, TRAIN, TEST, least)


def test_a_sample_for_train_and_for_test_is_refused():
    both = TRAIN & torch.tensor([False, True, False, False])
    with pytest.raises(ValueError, match="things: 1 samples are for train and for test, the first of them 1"):
        check_labels("things", torch.zeros(4, dtype=torch.int64), 1, TRAIN, TEST | both)


def test_counts_are_as_declared_where_something_is():
    check_counts("things", {"train": 3, "test": 0, "more": 1}, {"train": 3, "test": None}, "go")
    with pytest.raises(ValueError, match=r"things: train 3, test 0; expected train 1,000, test 0; go"):
        check_counts("things", {"train": 3, "more": 1}, {"train": 1000, "test": 0}, "go")
