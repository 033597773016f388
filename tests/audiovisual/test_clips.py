"""Windows of clips, against frame-by-frame composition."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from repro.audiovisual.clips import Clips

ROWS, WINDOW = 3, 4           # mel rows per frame, frames of a window
FRAME_COUNTS = (9, 4, 2, 0, 7, 6, 1)                         # item 3 has no pictures
ROW_COUNTS = (9 * ROWS, 4 * ROWS + 2, 2 * ROWS, 8 * ROWS + 1, 0, 5 * ROWS, 3 * ROWS)      # item 4 has no sound
LENGTHS = {"video": FRAME_COUNTS, "audio": tuple(rows // ROWS for rows in ROW_COUNTS)}
BOTH = (0, 1, 2, 5, 6)


@pytest.fixture(scope="module")
def clips():
    random, items = torch.Generator().manual_seed(0), torch.arange(7)
    return Clips(
        name="made up", digest="0", classes=("a", "b"), labels=items % 2, categories=items, pretrain=items >= 0,
        train=items < 4, test=items >= 4, rows_per_frame=ROWS, window=WINDOW,
        frames=torch.randint(256, (sum(FRAME_COUNTS), 3, 5, 3), dtype=torch.uint8, generator=random),
        first_frame=torch.tensor([0, *np.cumsum(FRAME_COUNTS)]),
        mel=torch.randn(sum(ROW_COUNTS), 6, generator=random), first_row=torch.tensor([0, *np.cumsum(ROW_COUNTS)]),
    )


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def windows(clips, modality, item, length=None):
    """All windows of an item, frame by frame."""
    length, made = length or LENGTHS[modality][item], []
    for start in range(max(length - WINDOW, 0) + 1):
        pieces = []
        for place in ((start + step) % length for step in range(WINDOW)):
            if modality == "video":
                pieces.append(clips.frames[int(clips.first_frame[item]) + place].permute(2, 0, 1)[:, None])
            else:
                first = int(clips.first_row[item]) + place * ROWS
                pieces.append(clips.mel[first:first + ROWS].T)
        made.append(torch.cat(pieces, 1))
    return made


def place(view, candidates):
    """The start of the one window that a view equals."""
    start, = (start for start, candidate in enumerate(candidates) if torch.equal(view, candidate))
    return start


@pytest.mark.parametrize(("modality", "lacking"), [("video", 3), ("audio", 4)])
def test_views_are_windows_that_begin_anywhere(clips, modality, lacking):
    assert clips.has(modality).tolist() == [item != lacking for item in range(7)]
    index = clips.has(modality).nonzero()[:, 0].repeat(60)
    views = clips.view(modality, index, generator())
    assert views.dtype == (torch.uint8 if modality == "video" else torch.float32)
    seen = {item: set() for item in index.tolist()}
    for item, view in zip(index.tolist(), views, strict=True):
        seen[item].add(place(view, windows(clips, modality, item)))
    for item, starts in seen.items():
        assert starts == set(range(max(LENGTHS[modality][item] - WINDOW, 0) + 1)), "every start comes up"


def test_twins_begin_uniformly_and_independently(clips):
    twins = clips.twins("video", torch.zeros(900, dtype=torch.int64), generator())
    candidates = windows(clips, "video", 0)
    starts = [[place(view, candidates) for view in views] for views in twins]
    assert len(candidates) == 6 and chisquare(np.bincount(np.ravel(starts), minlength=6)).pvalue > 1e-3
    pairs = np.bincount(6 * np.array(starts[0]) + starts[1], minlength=36)
    assert chisquare(pairs).pvalue > 1e-3


def test_pairs_are_aligned(clips):
    index = torch.tensor(BOTH * 40)
    starts = set()
    for item, pictures, sound in zip(index.tolist(), *clips.pair(index, generator()), strict=True):
        shared = min(LENGTHS["video"][item], LENGTHS["audio"][item])
        start = place(pictures, windows(clips, "video", item, shared))
        assert torch.equal(sound, windows(clips, "audio", item, shared)[start])
        starts.add((item, start))
    assert starts == {(0, start) for start in range(6)} | {(1, 0), (2, 0), (5, 0), (5, 1), (6, 0)}


@pytest.mark.parametrize("modality", ["video", "audio"])
@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_centred_windows_are_evenly_spread(clips, modality, count):
    index = torch.tensor([0, 2, 0, 5, 1])
    for item, own in zip(index.tolist(), clips.centred(modality, index, count), strict=True):
        candidates = windows(clips, modality, item)
        latest = len(candidates) - 1
        starts = [latest // 2] if count == 1 else [latest * step // (count - 1) for step in range(count)]
        assert torch.equal(own, torch.stack([candidates[start] for start in starts]))


@pytest.mark.parametrize("fits", [True, False])
def test_a_set_goes_to_a_device_or_is_streamed(clips, fits, monkeypatch):
    asked = []
    monkeypatch.setattr("repro.audiovisual.clips.fits", lambda size, device: asked.append(size) or fits)
    moved = clips.to("meta")
    assert asked == [clips.frames.nbytes + clips.mel.nbytes] and moved.streamed != fits
    assert moved.frames.is_meta == moved.mel.is_meta == fits and moved.labels is clips.labels
    index = torch.tensor(BOTH)
    for own, other in zip(clips.pair(index, generator()), moved.pair(index, generator()), strict=True):
        assert other.shape == own.shape and other.dtype == own.dtype and other.is_meta == fits
        assert fits or torch.equal(own, other)
    if fits:
        moved.to("meta")
        assert asked[1:] == [0]  # nothing is left to move
