import dataclasses

import numpy as np
import pytest
import torch

from repro.audiovisual.clips import Clips

ROWS = 3                      # mel rows per frame
WINDOW = 4
FRAME_COUNTS = (9, 4, 2, 0, 7, 6, 1)                         # item 3 has no pictures
ROW_COUNTS = (9 * ROWS, 4 * ROWS + 2, 2 * ROWS, 8 * ROWS + 1, 0, 5 * ROWS, 3 * ROWS)      # item 4 has no sound
BOTH = (0, 1, 2, 5, 6)


def offsets(counts):
    return torch.tensor([0, *np.cumsum(counts)])


def build(**changes):
    random = torch.Generator().manual_seed(0)
    items = len(FRAME_COUNTS)
    parts = {"pretrain": torch.ones(items, dtype=torch.bool), "train": torch.arange(items) < 4,
             "test": torch.arange(items) >= 4}
    values = {
        "name": "made up", "digest": "0", "classes": ("a", "b"), "labels": torch.arange(items) % 2,
        "categories": torch.arange(items), **parts,
        "frames": torch.randint(256, (sum(FRAME_COUNTS), 3, 5, 3), dtype=torch.uint8, generator=random),
        "first_frame": offsets(FRAME_COUNTS),
        "mel": torch.randn(sum(ROW_COUNTS), 6, generator=random), "first_row": offsets(ROW_COUNTS),
        "rows_per_frame": ROWS, "window": WINDOW,
    }
    return Clips(**values | changes)


@pytest.fixture(scope="module")
def clips():
    return build()


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def lengths(modality):
    return FRAME_COUNTS if modality == "video" else tuple(rows // ROWS for rows in ROW_COUNTS)


def window(clips, modality, item, start, length):
    """One window, frame by frame."""
    pieces = []
    for step in range(WINDOW):
        place = (start + step) % length
        if modality == "video":
            frame = clips.frames[int(clips.first_frame[item]) + place]
            pieces.append(frame.permute(2, 0, 1)[:, None])
        else:
            for row in range(ROWS):
                pieces.append(clips.mel[int(clips.first_row[item]) + place * ROWS + row][:, None])
    return torch.cat(pieces, 1)


def windows(clips, modality, item, length=None):
    length = lengths(modality)[item] if length is None else length
    return [window(clips, modality, item, start, length) for start in range(max(length - WINDOW, 0) + 1)]


def place(view, candidates):
    """The start of the one window that a view equals."""
    found = [start for start, candidate in enumerate(candidates) if torch.equal(view, candidate)]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("modality", ["video", "audio"])
def test_views_are_windows(clips, modality):
    index = clips.has(modality).nonzero()[:, 0].repeat(60)
    views = clips.view(modality, index, generator())
    shape = (3, WINDOW, 3, 5) if modality == "video" else (6, WINDOW * ROWS)
    assert views.shape == (len(index), *shape)
    assert views.dtype == (torch.uint8 if modality == "video" else torch.float32)
    seen = {item: set() for item in index.tolist()}
    for item, view in zip(index.tolist(), views, strict=True):
        seen[item].add(place(view, windows(clips, modality, item)))
    for item, starts in seen.items():
        assert starts == set(range(max(lengths(modality)[item] - WINDOW, 0) + 1)), "every start comes up"


def test_starts_are_uniform(clips):
    views = clips.view("video", torch.zeros(1800, dtype=torch.int64), generator())
    candidates = windows(clips, "video", 0)
    counts = np.bincount([place(view, candidates) for view in views], minlength=len(candidates))
    expected = 1800 / len(candidates)
    assert len(candidates) == 6 and ((counts - expected) ** 2 / expected).sum() < 20.5  # chi-square, 5 df, p = 0.001


def test_pairs_are_aligned(clips):
    index = torch.tensor(BOTH * 40)
    video, audio = clips.pair(index, generator())
    starts = set()
    for item, pictures, sound in zip(index.tolist(), video, audio, strict=True):
        shared = min(lengths("video")[item], lengths("audio")[item])
        start = place(pictures, windows(clips, "video", item, shared))
        assert torch.equal(sound, windows(clips, "audio", item, shared)[start])
        starts.add((item, start))
    assert {start for item, start in starts if item == 0} == set(range(6))
    assert {start for item, start in starts if item == 5} == {0, 1}, "five frames of sound beside six of pictures"


def test_short_items_repeat_from_their_start(clips):
    video, audio = clips.pair(torch.tensor([2]), generator())
    own = clips.frames[13:15].permute(3, 0, 1, 2)
    assert torch.equal(video[0], torch.cat([own, own], 1))
    rows = clips.mel[int(clips.first_row[2]):][:2 * ROWS].T
    assert torch.equal(audio[0], torch.cat([rows, rows], 1))
    alone = clips.view("video", torch.tensor([6]), generator())[0]
    assert torch.equal(alone, clips.frames[-1].permute(2, 0, 1)[:, None].expand(-1, WINDOW, -1, -1))


def test_twins_are_independent_windows(clips):
    index = torch.zeros(60, dtype=torch.int64)
    first, second = clips.twins("audio", index, generator())
    candidates = windows(clips, "audio", 0)
    starts = np.array([[place(view, candidates) for view in views] for views in (first, second)])
    assert len({tuple(pair) for pair in starts.T}) > 15, "of 36 pairs of starts"


def test_a_generator_determines_the_views(clips):
    index = torch.tensor(BOTH)
    for again in (clips.pair, lambda index, random: clips.twins("video", index, random)):
        first, same, other = (again(index.repeat(8), generator(seed)) for seed in (3, 3, 4))
        assert all(torch.equal(a, b) for a, b in zip(first, same, strict=True))
        assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("modality", ["video", "audio"])
@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_centred_windows_are_evenly_spread(clips, modality, count):
    index = torch.tensor([0, 2, 0, 5, 1])
    views = clips.centred(modality, index, count)
    assert views.shape[:2] == (5, count)
    for item, own in zip(index.tolist(), views, strict=True):
        candidates = windows(clips, modality, item)
        latest = len(candidates) - 1
        starts = [latest // 2] if count == 1 else [latest * step // (count - 1) for step in range(count)]
        for start, view in zip(starts, own, strict=True):
            assert torch.equal(view, candidates[start])
    assert torch.equal(views, clips.centred(modality, index, count))


def test_which_items_have_what(clips):
    assert clips.has("video").tolist() == [item != 3 for item in range(7)]
    assert clips.has("audio").tolist() == [item != 4 for item in range(7)]
    assert len(clips) == 7


@pytest.mark.parametrize(("modality", "item"), [("video", 3), ("audio", 4)])
def test_a_missing_modality_is_named(clips, modality, item):
    index = torch.tensor([0, item, 1])
    for ask in (lambda: clips.view(modality, index, generator()), lambda: clips.pair(index, generator()),
                lambda: clips.twins(modality, index, generator()), lambda: clips.centred(modality, index)):
        with pytest.raises(ValueError, match=f"made up: item {item} has no {modality}"):
            ask()


def test_sound_alone_needs_no_pictures():
    sound = build(frames=torch.zeros(0, 0, 0, 3, dtype=torch.uint8), first_frame=torch.zeros(8, dtype=torch.int64))
    assert not sound.has("video").any()
    assert sound.view("audio", torch.tensor([0, 3]), generator()).shape == (2, 6, WINDOW * ROWS)


def test_no_items_at_all(clips):
    none = torch.zeros(0, dtype=torch.int64)
    video, audio = clips.pair(none, generator())
    assert video.shape == (0, 3, WINDOW, 3, 5) and audio.shape == (0, 6, WINDOW * ROWS)
    assert clips.centred("video", none, 2).shape == (0, 2, 3, WINDOW, 3, 5)


def test_files_mapped_into_memory_give_the_same(clips, tmp_path):
    mapped = {}
    for name in ("frames", "mel"):
        np.save(tmp_path / f"{name}.npy", getattr(clips, name).numpy())
        mapped[name] = torch.from_numpy(np.load(tmp_path / f"{name}.npy", mmap_mode="c"))
    index = torch.tensor(BOTH)
    for own, other in zip(clips.pair(index, generator()), build(**mapped).pair(index, generator()), strict=True):
        assert torch.equal(own, other)


def test_pictures_and_sound_move_to_a_device(clips):
    assert clips.to("cpu").frames is clips.frames
    elsewhere = clips.to("meta")
    index = torch.tensor(BOTH)
    for own, other in zip(clips.pair(index, generator()), elsewhere.pair(index, generator()), strict=True):
        assert other.device.type == "meta" and other.shape == own.shape and other.dtype == own.dtype
    assert elsewhere.labels is clips.labels and elsewhere.has("audio").device.type == "cpu"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_same_views(clips):
    index = torch.tensor(BOTH * 5)
    for own, other in zip(clips.pair(index, generator()), clips.to("cuda").pair(index, generator()), strict=True):
        assert other.is_cuda and torch.equal(own, other.cpu())


def test_a_set_beyond_the_device_stays_and_is_streamed(clips, monkeypatch):
    asked = []
    monkeypatch.setattr("repro.audiovisual.clips.fits", lambda size, device: asked.append((size, device.type)))
    kept = clips.to("cuda")
    assert asked == [(clips.frames.nbytes + clips.mel.nbytes, "cuda")]
    assert kept.streamed and kept.frames is clips.frames and kept.mel is clips.mel and not clips.streamed
    index = torch.tensor(BOTH * 5)
    for own, other in zip(clips.pair(index, generator()), kept.pair(index, generator()), strict=True):
        assert torch.equal(own, other) and own.stride() == other.stride()


def test_a_set_that_fits_goes_to_the_device_whole(clips, monkeypatch):
    asked = []
    monkeypatch.setattr("repro.audiovisual.clips.fits", lambda size, device: asked.append(size) or True)
    moved = dataclasses.replace(clips, streamed=True).to("meta")
    assert not moved.streamed and moved.frames.is_meta and moved.mel.is_meta
    moved.to("meta")
    assert asked == [clips.frames.nbytes + clips.mel.nbytes, 0]  # nothing is left to move


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_streamed_views_are_in_pinned_memory_and_copied_without_waiting(clips):
    index = torch.tensor(BOTH * 5)
    views = dataclasses.replace(clips, streamed=True).pair(index, generator())
    torch.cuda.set_sync_debug_mode("error")
    try:
        copies = [view.to("cuda", non_blocking=True) for view in views]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for own, view, copy in zip(clips.pair(index, generator()), views, copies, strict=True):
        assert view.is_pinned() and torch.equal(own, copy.cpu())


@pytest.mark.parametrize("index", [torch.tensor([0.0]), torch.tensor([[0]]), torch.tensor(0), torch.tensor([True])])
def test_an_index_of_another_type_raises(clips, index):
    with pytest.raises(ValueError, match=r"index is .* should be torch.int64 of shape \(m,\) on the CPU"):
        clips.view("video", index, generator())


@pytest.mark.parametrize("item", [-1, 7, 2**40])
def test_an_item_that_is_not_there_raises(clips, item):
    with pytest.raises(IndexError, match=f"made up has items 0 to 6, not {item}"):
        clips.view("video", torch.tensor([0, item]), generator())


@pytest.mark.parametrize("count", [0, -1, 1.0, True, None])
def test_an_impossible_number_of_windows_raises(clips, count):
    with pytest.raises(ValueError, match=r"windows=.* should be a whole number of at least 1"):
        clips.centred("video", torch.tensor([0]), count)


def test_an_unknown_modality_raises(clips):
    with pytest.raises(ValueError, match="modality='vidio' is not one of: video, audio; did you mean 'video'"):
        clips.view("vidio", torch.tensor([0]), generator())


@pytest.mark.parametrize(("changes", "message"), [
    ({"labels": torch.zeros(7)}, "labels is torch.float32"),
    ({"categories": torch.zeros(6, dtype=torch.int64)}, r"categories is torch.int64 of shape \(6,\)"),
    ({"test": torch.zeros(7, dtype=torch.int64)}, "test is torch.int64"),
    ({"frames": torch.zeros(29, 3, 5, 3)}, "frames is torch.float32"),
    ({"frames": torch.zeros(29, 3, 5, dtype=torch.uint8)}, r"frames is torch.uint8 of shape \(29, 3, 5\)"),
    ({"frames": torch.zeros(29, 3, 3, 5, dtype=torch.uint8)}, "frames"),
    ({"mel": torch.zeros(10)}, "mel is torch.float32"),
    ({"mel": torch.zeros(10, 6, dtype=torch.float64)}, "mel is torch.float64"),
    ({"first_frame": offsets(FRAME_COUNTS)[:-1]}, "first_frame is torch.int64"),
    ({"first_frame": offsets(FRAME_COUNTS) + 1}, "first_frame runs from 1 to 30"),
    ({"first_frame": offsets((9, -2, 8, 0, 7, 6, 1))}, "first_frame .* never fall"),
    ({"first_row": offsets(ROW_COUNTS).clamp(max=50)}, "first_row runs from 0 to 50"),
    ({"mel": torch.zeros(2, 6), "first_row": offsets((0, 2, 0, 0, 0, 0, 0))}, "item 1 has 2 rows of sound"),
    ({"rows_per_frame": 0}, "rows_per_frame=0"),
    ({"window": True}, "window=True"),
    ({"window": 2.0}, "window=2.0"),
])
def test_inconsistent_arrays_are_named(changes, message):
    with pytest.raises(ValueError, match=f"made up: .*{message}"):
        build(**changes)


def test_another_window(clips):
    longer = dataclasses.replace(clips, window=6)
    assert longer.view("audio", torch.tensor([0]), generator()).shape == (1, 6, 6 * ROWS)
