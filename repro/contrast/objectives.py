"""The papers' objectives as functions of tensors, each a scalar mean over the batch.

Features are used as given: callers normalise them. Keys, and the soft targets made from them, are constants; the two
sides of `attraction` are not. Negatives come from a `Dictionary`, which carries no gradient. Every objective is
computed in float32 or better, also where autocast is on or features arrive in bfloat16. What does not fit raises
ValueError with the numbers: sizes that disagree or are 0, and parameters outside of their range.
"""

import functools
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import logsigmoid


def info_nce(
    query: Tensor, key: Tensor, negatives: Tensor, temperature: float, *, excluded: Tensor | None = None
) -> Tensor:
    """InfoNCE with one positive key per query and a shared dictionary of negatives.

        L = mean_i [ log( exp(q_i.k_i/t) + sum_j exp(q_i.n_j/t) ) - q_i.k_i/t ]

    Args:
        query: (N, d) projections, with gradient.
        key: (N, d) momentum projections of the other view; treated as constants.
        negatives: (K, d) dictionary of earlier keys.
        temperature: t > 0, in units of the dot product (MoCo 0.07, taxonomy 0.1, MoCo v2 0.2).
        excluded: (N, K) bool, where an entry is no negative of a query, being of the same sample; none by default.

    Returns:
        Scalar in nats, at least 0; ln(K + 1) when all logits agree. A query without negatives adds 0.

    Raises:
        ValueError: if sizes disagree or are 0, or t is not positive and finite.

    Source: taxonomy SI, Eq. 1, with the K + 1 candidates of its Alg. 1; He et al. 2020, Eq. 1.
    """
    query, key, negatives = _checked(query, key, negatives, temperature=temperature)
    positive = (query * key).sum(1) / temperature                                        # (N,)
    logits = _similarities(query, negatives, temperature)                                # (N, K)
    if excluded is not None:  # with -inf a query without negatives would have NaN gradients
        check_shapes(query=(query, "N d"), negatives=(negatives, "K d"), excluded=(excluded, "N K"))
        logits = logits.masked_fill(excluded, torch.finfo(logits.dtype).min)
    return -logsigmoid(positive - logits.logsumexp(1)).mean()


def jcl(query: Tensor, keys: Tensor, negatives: Tensor, temperature: float, strength: float | Tensor) -> Tensor:
    """Joint contrast with infinitely many positive keys, Gaussian around the M keys given.

        L = mean_i { log[ exp(a_i + c_i) + sum_j exp(q_i.n_j/t) ] - a_i }
        a_i = q_i.mu_i/t,  c_i = strength q_i' Sigma_i q_i / (2 t^2)

    mu_i and Sigma_i are the mean (not normalised again) and the biased covariance of k_i1 ... k_iM. The quadratic form
    is the biased variance of the M products q_i.k_im, so that no covariance matrix is needed.

    Args:
        query, negatives, temperature: as of `info_nce` (JCL 0.2).
        keys: (N, M, d) momentum projections of M other views; treated as constants.
        strength: lambda, finite and at least 0: the weight of the covariance (JCL 4.0, ramped up during training). A
            tensor without axes is not checked, as the host would wait for its device.

    Returns:
        Scalar in nats, at least 0; ln(K + 1) when all logits agree and the keys of a query are equal. With M = 1 it is
        `info_nce` for every strength; with strength 0 it is `info_nce` on the mean keys.

    Raises:
        ValueError: as `info_nce`, or if the strength is negative or not finite.

    Source: JCL supplement, Eq. M.8.
    """
    if not isinstance(strength, Tensor) and not 0 <= strength < math.inf:
        raise ValueError(f"strength={strength} should be finite and at least 0 (0 leaves the covariance out)")
    products, repulsion = _several(query, keys, negatives, temperature)                  # (N, M), (N,)
    attracted = products.mean(1)                                                         # (N,) a
    spread = strength / 2 * products.var(1, correction=0)                                # (N,) c
    return (spread - logsigmoid(attracted + spread - repulsion)).mean()


def vanilla(query: Tensor, keys: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    """The mean of `info_nce` over M positive keys of every query, which JCL replaces by its closed form.

        L = mean_i mean_m { log[ exp(q_i.k_im/t) + sum_j exp(q_i.n_j/t) ] - q_i.k_im/t }

    A scalar in nats, at least 0; ln(K + 1) when all logits agree. Arguments and errors are those of `jcl`. The keys of
    a query share the sum over the dictionary, so that memory grows as N (K + M).

    Source: JCL supplement, the loss that Eq. M.8 bounds for Gaussian keys.
    """
    positives, repulsion = _several(query, keys, negatives, temperature)                 # (N, M), (N,)
    return -logsigmoid(positives - repulsion.unsqueeze(1)).mean()


def sce(
    query: Tensor, key: Tensor, negatives: Tensor,
    temperature: float, key_temperature: float, weight: float, masked_positive: bool = True,
) -> Tensor:
    """Similarity contrastive estimation: cross-entropy with the positive and the key's own relations as soft target.

        L = -mean_i sum_k w_ik log p_ik,  w_i = weight e_0 + (1 - weight) s_i

    over the positive (k = 0) and the dictionary: p_i = softmax of [q_i.k_i, q_i.n_1, ..., q_i.n_K]/t, and s_i = softmax
    of k_i.n_j/t_k over the dictionary, with s_i0 = 0. It equals weight info_nce + (1 - weight) (ressl + ceil).

    Args:
        query, key, negatives, temperature: as of `info_nce` (SCE 0.1), with its errors; negatives are constants in s.
        key_temperature: t_k > 0 of the target, smaller than t for a sharper target (SCE 0.03 to 0.07).
        weight: 0 to 1, the share of the positive key in the target (SCE 0.5).
        masked_positive: False gives the positive a logit of 0 in the target's softmax instead of leaving it out, as the
            pseudo-code and the released code do, so that s_i0 = 1 / (1 + sum_j exp(k_i.n_j/t_k)).

    Returns:
        Scalar in nats, at least 0; ln(K + 1) when all logits agree.

    Source: SCE supplement, the loss that its proof decomposes, and Alg. 1, which has the logit of 0.
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"weight={weight} should be between 0 (relations alone) and 1 (the positive key alone)")
    query, key, negatives = _checked(query, key, negatives, temperature=temperature, key_temperature=key_temperature)
    positive = (query * key).sum(1) / temperature                                        # (N,)
    logits = _similarities(query, negatives, temperature)                                # (N, K)
    similarities = _similarities(key, negatives.detach(), key_temperature)               # (N, K)
    leak = key.new_zeros(len(key)) if masked_positive else torch.sigmoid(-similarities.logsumexp(1))     # (N,) s_i0
    attracted = leak * positive + (1 - leak) * (similarities.softmax(1) * logits).sum(1)                 # (N,)
    normaliser = torch.logaddexp(positive, logits.logsumexp(1))                          # (N,)
    return (normaliser - weight * positive - (1 - weight) * attracted).mean()


def ressl(query: Tensor, key: Tensor, negatives: Tensor, temperature: float, key_temperature: float) -> Tensor:
    """Relational self-supervised learning: the query should see the dictionary as its key does.

        L = -mean_i sum_j s_ij log softmax_j(q_i.n_j/t),  s_i = softmax_j(k_i.n_j/t_k)

    A scalar in nats, at least the target's entropy; ln(K) when all logits agree. Arguments and errors are those of
    `sce` (ReSSL 0.1 and 0.04).

    Source: SCE supplement, the second term of its decomposition; Zheng et al. 2021.
    """
    query, key, negatives = _checked(query, key, negatives, temperature=temperature, key_temperature=key_temperature)
    logits = _similarities(query, negatives, temperature)                                # (N, K)
    relations = _similarities(key, negatives.detach(), key_temperature).softmax(1)       # (N, K)
    return (logits.logsumexp(1) - (relations * logits).sum(1)).mean()


def ceil(query: Tensor, key: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    """The term of SCE that lowers the probability of the positive key.

        L = -mean_i log(1 - p_i0),  p_i0 = exp(q_i.k_i/t) / ( exp(q_i.k_i/t) + sum_j exp(q_i.n_j/t) )

    A scalar in nats, at least 0; ln((K + 1) / K) when all logits agree. Computed from the logarithms of both sums:
    exact also where p_i0 rounds to 1. Arguments and errors are those of `info_nce` (SCE 0.1).

    Source: SCE supplement, the third term of its decomposition.
    """
    query, key, negatives = _checked(query, key, negatives, temperature=temperature)
    positive = (query * key).sum(1) / temperature                                        # (N,)
    return -logsigmoid(_similarities(query, negatives, temperature).logsumexp(1) - positive).mean()


def attraction(query: Tensor, target: Tensor) -> Tensor:
    """Attraction of two projections: mean_i (2 - 2 q_i.t_i), the squared distance of unit vectors.

    Both sides carry gradient, with neither predictor nor stop-gradient: on its own this objective collapses.

    Args:
        query: (N, d) projections, with gradient.
        target: (N, d) projections of the untransformed input, with gradient.

    Returns:
        Scalar without unit, 0 to 4 for unit vectors; 2 when they are orthogonal.

    Raises:
        ValueError: if sizes disagree or are 0.

    Source: taxonomy SI, Alg. 1, whose printed "+" is read as a product; averaged as in the released code.
    """
    check_shapes(query=(query, "N d"), target=(target, "N d"))
    query, target = raised(query, target)
    return (2 - 2 * (query * target).sum(1)).mean()


def reconstruction(decoded: Tensor, sequence: Tensor, lengths: Tensor) -> Tensor:
    """Masked L1 distance between decoded and true sequences.

        L = mean_i (1/l_i) sum_{t < l_i} (1/D) sum_c |r_itc - x_itc|

    Args:
        decoded: (N, T, D) sequences r, with gradient; frames from l_i on are ignored.
        sequence: (N, T, D) sequences x.
        lengths: (N,) integers l_i, 1 to T. Values are checked on the CPU alone: on a GPU that would stall the step.

    Returns:
        Scalar in the unit of the sequences, at least 0; the mean of |x| for a decoder that gives 0.

    Raises:
        ValueError: if sizes disagree or are 0, or a length on the CPU is outside 1 to T.

    Source: taxonomy SI, Alg. 1, which sums squares; the masked L1 mean is that of the released code.
    """
    decoded, sequence = _checked_sequences(lengths, decoded=decoded, sequence=sequence)
    return _masked_l1(decoded, sequence, lengths).mean()


def squared_error(decoded: Tensor, sequence: Tensor, lengths: Tensor) -> Tensor:
    """Squared distance between decoded and true sequences, which grows with their length.

        L = mean_i sum_{t < l_i} sum_c (r_itc - x_itc)^2

    A scalar in the squared unit of the sequences, at least 0. Arguments and errors are those of `reconstruction`.

    Source: taxonomy SI, Algorithm 1.
    """
    decoded, sequence = _checked_sequences(lengths, decoded=decoded, sequence=sequence)
    padding = _padding(lengths, sequence.shape[1])
    return (decoded - sequence).masked_fill(padding[:, :, None], 0).square().sum((1, 2)).mean()


def sequence_contrast(
    decoded: Tensor, key_decoded: Tensor, negatives: Tensor, lengths: Tensor, temperature: float
) -> Tensor:
    """InfoNCE between decoded sequences, whose logits are negative masked L1 distances.

        L = -mean_i log[ exp(-|r_i - k_i|/t) / ( exp(-|r_i - k_i|/t) + sum_j exp(-|r_i - n_j|/t) ) ]

    |.| is the distance of `reconstruction` over l_i frames. If T' differs from T, dictionary entries are compared over
    the first min(T, T') frames, and their sum is divided by min(l_i, T'). Memory grows as N K, not N K T D.

    Args:
        decoded, lengths: as of `reconstruction`, with its errors; r is decoded from the query.
        key_decoded: (N, T, D) sequences k decoded by the momentum branch; treated as constants.
        negatives: (K, T', D) dictionary of earlier decoded keys.
        temperature: t, positive and finite, in the unit of the sequences (taxonomy 0.1).

    Returns:
        Scalar in nats, at least 0; ln(K + 1) when all distances agree.

    Source: taxonomy, contrastive decoder, from the released code (the SI prints no equation for it).
    """
    decoded, key_decoded, negatives = _checked_sequences(
        lengths, decoded=decoded, key_decoded=key_decoded, negatives=negatives
    )
    check_temperatures(temperature=temperature)
    positive = -_masked_l1(decoded, key_decoded.detach(), lengths) / temperature         # (N,)
    repulsion = torch.logsumexp(-_l1_to_entries(decoded, negatives, lengths) / temperature, dim=1)   # (N,)
    return -logsigmoid(positive - repulsion).mean()


# ------------------------------------------------------------------------------------------------ what they share


def check_shapes(**tensors: tuple[Tensor, str]) -> None:
    """Raise ValueError unless `name=(tensor, "N d")` has these axes, of one size per letter, all at least 1.

    Raises TypeError for what is no tensor of real numbers.
    """
    known: dict[str, tuple[int, str]] = {}
    for name, (tensor, axes) in tensors.items():
        if not isinstance(tensor, Tensor) or tensor.is_complex():
            kind = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
            raise TypeError(f"{name} is {kind}; it should be a torch.Tensor of real numbers")
        shape, letters = tuple(tensor.shape), axes.split()
        if len(shape) != len(letters):
            raise ValueError(f"{name} has shape {shape}; it should be ({', '.join(letters)})")
        for letter, size in zip(letters, shape, strict=True):
            expected, first = known.setdefault(letter, (size, name))
            if size == 0:
                raise ValueError(f"{name} has shape {shape}, so {letter}=0; give at least one")
            if size != expected:
                raise ValueError(f"{letter}={size} in {name} but {letter}={expected} in {first}; give both one size")


def check_temperatures(**temperatures: float) -> None:
    """Raise ValueError unless every temperature is positive and finite."""
    for name, value in temperatures.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name}={value} should be positive and finite (the papers use 0.03 to 1)")


def raised(*tensors: Tensor) -> list[Tensor]:
    """The tensors in one precision: float32, or float64 if one of them has it."""
    precision = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)
    return [tensor.to(precision) for tensor in tensors]


def _checked(query: Tensor, key: Tensor, negatives: Tensor, axes: str = "N d", **temperatures: float) -> list[Tensor]:
    """Query, constant key of such axes and negatives in one precision; raises where shapes or values are odd."""
    name = "key" if axes == "N d" else "keys"
    check_shapes(**{"query": (query, "N d"), name: (key, axes), "negatives": (negatives, "K d")})
    check_temperatures(**temperatures)
    return raised(query, key.detach(), negatives)


def _several(query: Tensor, keys: Tensor, negatives: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Logits of several positive keys, (N, M), and the log of the sum over the dictionary, (N,)."""
    query, keys, negatives = _checked(query, keys, negatives, "N M d", temperature=temperature)
    positives = (query.unsqueeze(1) * keys).sum(2) / temperature
    return positives, _similarities(query, negatives, temperature).logsumexp(1)


def _similarities(query: Tensor, entries: Tensor, temperature: float) -> Tensor:
    """Dot products in units of the temperature, never in half precision: (N, d), (K, d) -> (N, K)."""
    with torch.autocast(query.device.type, enabled=False):
        return (query / temperature) @ entries.T


def _checked_sequences(lengths: Tensor, **sequences: Tensor) -> list[Tensor]:
    """Sequences in one precision; raises where shapes are odd, or lengths on the CPU leave 1 to T."""
    axes = {name: (tensor, "K T' D" if name == "negatives" else "N T D") for name, tensor in sequences.items()}
    check_shapes(**axes, lengths=(lengths, "N"))
    frames = sequences["decoded"].shape[1]
    if lengths.device.type == "cpu":  # elsewhere reading them would wait for the device
        shortest, longest = lengths.min().item(), lengths.max().item()
        if shortest < 1 or longest > frames:
            raise ValueError(
                f"lengths run from {shortest} to {longest}, but decoded has {frames} frames; "
                f"keep them in 1 to {frames} and drop empty sequences"
            )
    return raised(*sequences.values())


def _padding(lengths: Tensor, frames: int) -> Tensor:
    """True for frames at or beyond a sequence's length: (N,) -> (N, frames)."""
    return torch.arange(frames, device=lengths.device) >= lengths.unsqueeze(1)


def _masked_l1(decoded: Tensor, sequence: Tensor, lengths: Tensor) -> Tensor:
    """Mean over coordinates and valid frames of the absolute difference: (N, T, D), (N, T, D), (N,) -> (N,)."""
    padding = _padding(lengths, decoded.shape[1]).unsqueeze(2)
    return (decoded - sequence).masked_fill(padding, 0).abs().mean(2).sum(1) / lengths


def _l1_to_entries(decoded: Tensor, entries: Tensor, lengths: Tensor) -> Tensor:
    """Masked L1 distance of every sequence to every entry: (N, T, D), (K, T', D), (N,) -> (N, K).

    Frames beyond l_i are set to 0 in r_i; what they then add to a distance, sum_{t >= l_i} |n_jt|, is subtracted.
    """
    frames = min(decoded.shape[1], entries.shape[1])
    padding = _padding(lengths, frames)                                                  # (N, frames)
    sequences = decoded[:, :frames].masked_fill(padding.unsqueeze(2), 0).flatten(1)      # (N, frames D)
    entries = entries[:, :frames]
    # The product in float64, because a difference follows and TensorFloat-32 may be allowed.
    norms = torch.linalg.vector_norm(entries, ord=1, dim=2).double()                     # (K, frames)
    excess = (padding.double() @ norms.T).to(sequences.dtype)                            # (N, K)
    total = _L1.apply(sequences, entries.flatten(1))                                     # (N, K)
    return (total - excess) / (lengths.clamp(max=frames).unsqueeze(1) * decoded.shape[2])


class _L1(torch.autograd.Function):
    """Sum of absolute differences of all pairs: (N, d), (K, d) -> (N, K).

    Both passes write the differences to a few entries at a time into one buffer. `torch.cdist` takes twice the time on
    a CPU, and on CUDA its backward pass holds all differences.
    """

    @staticmethod
    def forward(ctx: Any, sequences: Tensor, entries: Tensor) -> Tensor:
        ctx.save_for_backward(sequences, entries)
        return torch.cat([difference.abs_().sum(2) for _, difference in _differences(sequences, entries)], dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor | None]:
        sequences, entries = ctx.saved_tensors
        to_sequences = torch.zeros_like(sequences).unsqueeze(1)
        to_entries = torch.empty_like(entries) if ctx.needs_input_grad[1] else None
        for rows, difference in _differences(sequences, entries):
            sign = difference.sign_()
            to_sequences.baddbmm_(upstream[:, None, rows], sign)
            if to_entries is not None:
                to_entries[rows] = -torch.einsum("nk,nkd->kd", upstream[:, rows], sign)
        return to_sequences.squeeze(1), to_entries


def _differences(sequences: Tensor, entries: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Every sequence minus a few entries, and which: (N, d), (K, d) -> (N, k, d), all written into one buffer.

    The buffer is no larger than the entries, nor on a CPU than 8 MiB in float32, which a cache may hold.
    """
    largest = 2**21 if sequences.device.type == "cpu" else 2**25
    count = max(1, min(len(entries) // len(sequences), largest // sequences.numel()))
    buffer = sequences.new_empty(len(sequences), count, sequences.shape[1])
    for start in range(0, len(entries), count):
        rows = slice(start, min(start + count, len(entries)))
        yield rows, torch.sub(sequences.unsqueeze(1), entries[rows], out=buffer[:, : rows.stop - start])
