"""What candidates are told apart by: embeddings known by their inner products, above all gradients."""

import functools

import torch
from torch import Tensor

from repro.contrast.arguments import moderated, query_norms


class Embeddings:
    """Rows G_n that are known by their inner products alone, as far as k-means++ needs them.

        <G_m, G_n> = (a_m.a_n) (b_m.b_n) - c_m.w_n - w_m.c_n

    The factors are kept as columns, (d, P): a product of all rows with one then takes half the time on a CPU.
    Squared distances are lowered by what rounding may add, so that equal rows are at distance 0.

    Args:
        a: (P, d) points or first factors, of moderate size.
        b: (P, e) second factors; None for points, from which the median of about a hundred of them is subtracted, so
            that digits do not cancel (the mean would follow a single huge point).
        crossed: (P, 2 M) rows [c, w]; None without them.
    """

    def __init__(self, a: Tensor, b: Tensor | None = None, crossed: Tensor | None = None) -> None:
        if b is None:
            a = a - a[:: max(1, len(a) // 100)].median(0).values
        factors = [a] if b is None else [a, b]
        squares = [torch.linalg.vector_norm(factor, dim=1).square_() for factor in factors]
        norms = magnitude = functools.reduce(torch.mul, squares)
        if crossed is not None:
            c, w = crossed.chunk(2, dim=1)
            twice = 2 * (c * w).sum(1)
            norms, magnitude = norms - twice, norms + twice.abs()
        # The rounding error of a sum grows as the root of its length, and was seen to stay below a third of this.
        roundings = 4 + max(factor.shape[1] for factor in factors) ** 0.5
        self.norms = norms - roundings * torch.finfo(a.dtype).eps * magnitude            # (P,) squared
        self.factors = [factor.T.contiguous() for factor in factors]
        self.crossed = None if crossed is None else crossed.T.contiguous()

    def to(self, index: Tensor) -> Tensor:
        """Squared distance of every row to one, at least 0: (1,) -> (P,)."""
        products = [torch.mv(factor.T, factor.index_select(1, index).view(-1)) for factor in self.factors]
        product = functools.reduce(torch.mul, products)
        if self.crossed is not None:
            c_and_w = self.crossed.index_select(1, index).view(-1)
            product -= torch.mv(self.crossed.T, c_and_w.roll(len(c_and_w) // 2))
        return torch.add(self.norms, self.norms.index_select(0, index)).sub_(product, alpha=2).clamp_(min=0)


def gradients(
    keys: Tensor, candidates: Tensor, queries: Tensor, query_inputs: Tensor, temperature: float, checked: bool = True
) -> Embeddings:
    """Gradients of the last layer whose outputs are the classes; arguments as of `negatives.gradient_factors`.

    `keys` are the candidates, of moderate size: a common factor of all rows changes no choice. Values are `checked` as
    `moderated` does.
    """
    b = second_factor(candidates, queries, query_inputs, temperature)
    return Embeddings(keys, *moderated({"the factor b of the gradients": b}, checked=checked))


def normalised_gradients(
    keys: Tensor, candidates: Tensor, queries: Tensor, query_inputs: Tensor, temperature: float, checked: bool = True
) -> Embeddings:
    """Gradients of weight and bias of the last layer whose outputs z_j become the classes q_j = z_j / |z_j|.

        G_n = sum_j g_nj (k_n - (k_n.q_j) q_j) [h_j; 1]',  g_nj = r_nj / |z_j|

    With a_n = k_n, b_n the coordinates of sum_j g_nj [h_j; 1], c_nj = g_nj (k_n.q_j) and K the elementwise product of
    the Gram matrices of q and [h; 1], inner products have the form that `Embeddings` takes. A common factor of all
    rows is left out. Arguments are those of `gradients`.
    """
    norms = query_norms(queries, checked=checked)                                        # (M, 1)
    classes = queries / norms
    residuals, _ = pseudo_labelled(candidates @ (classes / temperature).T)
    inputs = torch.cat([query_inputs, torch.ones_like(query_inputs[:, :1])], dim=1)
    factors = {"the posterior's residual": residuals.div_(norms.T), "query_inputs": inputs}
    weights, inputs = moderated(factors, checked=checked)
    basis = _in_basis(inputs)
    b = weights @ basis.T
    similarities = keys @ classes.T                                                      # (P, M)
    c = weights.mul_(similarities)
    gram = (classes @ classes.T) * (inputs @ inputs.T)                                   # (M, M) K
    w = similarities.mul_(b @ basis).addmm_(c, gram, alpha=-0.5)
    return Embeddings(keys, b, torch.cat([c, w], dim=1))


def pseudo_labelled(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Posterior less the one-hot pseudo-label, (P, M), and the loss of the label, (P,); overwrites the logits.

    Both are made of the other classes' sum, so that they are exact also where the label's probability rounds to 1.
    """
    top, label = logits.max(1, keepdim=True)
    others = logits.sub_(top).exp_().scatter_(1, label, 0)
    total = others.sum(1, keepdim=True)
    residuals = others.div_(1 + total).scatter_(1, label, -total / (1 + total))
    return residuals, total.log1p().squeeze(1)


def second_factor(candidates: Tensor, queries: Tensor, query_inputs: Tensor, temperature: float) -> Tensor:
    """b of `gradient_factors`, in memory column by column."""
    residuals, _ = pseudo_labelled(candidates @ (queries / temperature).T)
    return ((_in_basis(query_inputs) / temperature) @ residuals.T).T


def _in_basis(rows: Tensor) -> Tensor:
    """Coordinates of rows in an orthonormal basis of their span, as columns: (M, e) -> (min(M, e), M)."""
    return torch.linalg.qr(rows.T, mode="r").R
