"""Tensors divided by their largest magnitude, with and without a look at values."""

import pytest
import torch

from repro.contrast.arguments import moderated


@pytest.mark.parametrize(("size", "divided"), [
    (0.0, False), (1e-30, True), (0.9e-4, True), (2e-4, False), (1.0, False), (0.9e4, False), (1.5e4, True),
    (1e30, True),
])
@pytest.mark.parametrize("checked", [True, False])
def test_float32_is_divided_where_products_of_four_values_could_leave_its_range(size, divided, checked):
    tensor = torch.tensor([[0.5 * size, -size]])
    expected = torch.tensor([[0.5, -1.0]]) if divided else tensor
    torch.testing.assert_close(moderated({"a": tensor}, checked=checked), [expected])
    assert moderated({"a": tensor.double()}, checked=checked)[0].equal(tensor.double())
