"""A step of pre-training written from the objectives' definitions, for `repro.skeleton.pretrain` to agree with.

It knows no batch: it draws the views with the same generator, then encodes and decodes sequence by sequence and frame
by frame and compares with every entry of the dictionaries in turn.
"""

import copy

import numpy as np
import torch
from torch import nn


def slow_readout(model, sequence):
    """Top-layer state after the last frame of one unpadded sequence (T, D)."""
    _, final = nn.GRU.forward(model.encoder.gru, sequence)
    return final[-1]


def slow_embedding(model, readout):
    projected = model.head(readout)
    return projected / projected.square().sum().sqrt()


def slow_decoding(model, readout, frames):
    """Frames (T, D) decoded one after the other from one readout."""
    state, decoded = None, []
    for _ in range(frames):
        output, state = nn.GRU.forward(model.decoder.gru, readout.unsqueeze(0), state)
        decoded.append(model.decoder.output(output[0]))
    return torch.stack(decoded)


def slow_l1(first, second, length):
    """Mean over coordinates, then over `length` frames, of the absolute difference."""
    return sum((first[t] - second[t]).abs().mean() for t in range(length)) / length


def slow_nce(positive, negatives):
    """-log of the positive's share among it and the negatives."""
    return -(positive.exp() / (positive.exp() + sum(negative.exp() for negative in negatives))).log()


def slow_view(sequences, lengths, flip, shear, generator):
    """Views made sequence by sequence, frame by frame and joint by joint, from draws of a generator."""
    reverse = torch.rand(len(sequences), generator=generator) < flip
    entries = shear * (2 * torch.rand(len(sequences), 3, 3, generator=generator) - 1)
    views = torch.zeros_like(sequences)
    parts = zip(views, sequences, lengths.tolist(), reverse, entries, strict=True)
    for view, sequence, length, mirrored, matrix in parts:
        for t in range(length):
            frame = sequence[length - 1 - t if mirrored else t].view(-1, 3)
            for joint, place in zip(view[t].view(-1, 3), frame, strict=True):
                for row in range(3):
                    joint[row] = sum((1 if row == c else matrix[row, c]) * place[c] for c in range(3))
    return views


def slow_view_invariant(frames):
    """The transform of Predict & Cluster's released code, a joint at a time, with an explicit inverse."""
    first = frames[0]
    e1 = (first[1] - first[0]) / np.linalg.norm(first[1] - first[0])
    e2 = (first[12] - first[16]) - np.dot(first[12] - first[16], e1) * e1
    e2 /= np.linalg.norm(e2)
    inverse = np.linalg.inv(np.stack([e2, np.cross(e2, e1), e1], axis=1))
    return np.array([[inverse @ (joint - first[0]) for joint in frame] for frame in frames])


def slow_scale(frames):
    """Each axis mapped to [-1, 1] by itself."""
    parts = [frames[..., axis] for axis in range(3)]
    return np.stack([2 * (part - part.min()) / (part.max() - part.min()) - 1 for part in parts], axis=-1)


def slow_thin_out(frames):
    step = max(len(frames) // 50, 1)
    return np.array([frames[t] for t in range(0, len(frames), step)][:50])


class SlowStep:
    """The terms, keys and gradients of the step that `fast` is about to take, without touching it."""

    def __init__(self, fast):
        recipe, generator = fast.recipe, copy.deepcopy(fast.generator)
        self.recipe, self.generator = recipe, generator
        self.model, self.twin = copy.deepcopy(fast.model), copy.deepcopy(fast.keys.twin)
        self.negatives = fast.dictionary.entries.clone()
        self.sequence_negatives = fast.sequence_dictionary.entries.clone()
        order, draws = fast.order.get_state(), copy.deepcopy(fast.order_generator)
        if len(order) < recipe.batch:
            order = torch.randperm(len(fast.train), generator=draws)
        index = fast.train[order[: recipe.batch]]
        clean, lengths = fast.data.sequences[index], fast.data.lengths[index]
        self.lengths = lengths.tolist()
        contrasts = recipe.has("CE") or recipe.has("CD")
        query = key = [None] * recipe.batch
        if contrasts or recipe.has("AE") or recipe.ad_input == "augmented":
            query = slow_view(clean, lengths, recipe.flip, recipe.shear, generator)
        if contrasts:
            key = slow_view(clean, lengths, recipe.flip, recipe.shear, generator)
        samples = [self._sample(*views) for views in zip(clean, query, key, self.lengths, strict=True)]
        self.losses = {term: torch.stack([sample[term] for sample in samples]).mean() for term in samples[0]}
        weights = {"AE": recipe.ae_weight, "CE": recipe.ce_weight, "AD": recipe.ad_weight, "CD": recipe.cd_weight}
        self.total = sum(weights[term] * loss for term, loss in self.losses.items())
        self.keys = {name: torch.stack([sample[name] for sample in self.found]) for name in self.found[0]}

    def _sample(self, clean, query, key, length):
        recipe, model, losses, keys = self.recipe, self.model, {}, {}
        if recipe.has("AE"):
            z_query = slow_embedding(model, slow_readout(model, query[:length]))
            z_clean = slow_embedding(model, slow_readout(model, clean[:length]))
            losses["AE"] = 2 - 2 * (z_query * z_clean).sum()
        if recipe.has("CE"):
            z_query = slow_embedding(model, slow_readout(model, query[:length]))
            with torch.no_grad():
                keys["CE"] = slow_embedding(self.twin, slow_readout(self.twin, key[:length]))
            similar = [(z_query * other).sum() / recipe.temperature for other in (keys["CE"], *self.negatives)]
            losses["CE"] = slow_nce(similar[0], similar[1:])
        if recipe.has("AD"):
            source = clean if recipe.ad_input == "clean" else query
            decoded = slow_decoding(model, self._decoded(model, source[:length]), length)
            losses["AD"] = slow_l1(decoded, clean, length)
            if recipe.ad_loss == "squared":
                losses["AD"] = sum((decoded[t] - clean[t]).square().sum() for t in range(length))
        if recipe.has("CD"):
            decoded = slow_decoding(model, self._decoded(model, query[:length]), length)
            crop = self.sequence_negatives.shape[1]
            with torch.no_grad():
                keys["CD"] = slow_decoding(self.twin, self._decoded(self.twin, key[:length]), max(length, crop))
            positive = -slow_l1(decoded, keys["CD"], length) / recipe.temperature
            compared = min(length, crop)
            others = [-slow_l1(decoded, entry, compared) / recipe.temperature for entry in self.sequence_negatives]
            losses["CD"] = slow_nce(positive, others)
            keys["CD"] = keys["CD"][:crop]
        self.found = [*getattr(self, "found", []), keys]
        return losses

    def _decoded(self, model, sequence):
        """What the decoder is given of one sequence: its readout, or that through the head, of unit length."""
        readout = slow_readout(model, sequence)
        return slow_embedding(model, readout) if self.recipe.decoder_input == "embedding" else readout
