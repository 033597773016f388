"""What is recorded on CUDA, as far as a CPU tells: what cannot be, buckets of frames, and what is handed to a step.

The steps of all learners are watched in `test_contract.py`.
"""

import gc
import sys
import warnings
import weakref

import pytest
import torch
from ended import finish
from made_up_pairs import CPU
from made_up_skeletons import learner as skeleton_learner
from made_up_skeletons import made_up as made_up_skeletons
from stand_in import StandIn, as_recorded
from tqdm.auto import tqdm
from walks import Walk

from repro.run.fit import fit
from repro.run.recorded import Buffers, Recorded

pytestmark = pytest.mark.usefixtures("one_thread", "small_buckets")
ALL = "AE+CE+AD+CD"


def skeletons(objectives=ALL, **changes):
    return skeleton_learner(objectives, batch=2, epochs=2, **changes)


class Faulty(Walk):
    """A walk that can be recorded; `ahead`, a number, is raised every step."""

    def __init__(self):
        super().__init__()
        self.optimiser, self.ahead = torch.optim.Adam(self.model.parameters(), lr=0.1, fused=True), 0.0

    def prepare(self):
        self.ahead += 1.0
        self.given["ahead"] = self.ahead

    def compute(self):
        return super().compute() + self.given.tensor("ahead")


class Reads(Faulty):
    def compute(self):
        return super().compute() / self.weight.detach().max().item()


class Counts(Faulty):
    def compute(self):
        return super().compute() * self.ahead


@pytest.mark.parametrize(("kind", "error", "message"), [
    (Reads, RuntimeError, "_local_scalar_dense reads a value"),
    (Counts, AssertionError, r"4\.0(.|\n)*5\.0"),
])
def test_a_step_that_cannot_be_recorded_would_be_seen(kind, error, message, monkeypatch):
    monkeypatch.setattr("repro.run.learner.Recorded", StandIn)
    sound, faulty = as_recorded(Faulty()), as_recorded(kind())
    for _ in range(sound.total_steps):
        sound.step()
    assert sound.recorded.repeated[()] == sound.total_steps - 4
    with pytest.raises(error, match=message):
        for _ in range(faulty.total_steps):
            faulty.step()


# ---------------------------------------------------------------------------------------------- buckets of frames


@pytest.fixture
def double(monkeypatch):
    """Whatever is made in the test, is made in float64, and stays so."""
    narrowed, wide = torch.Tensor.float, torch.float64
    monkeypatch.setattr(torch.Tensor, "float", lambda rows: rows if rows.dtype == wide else narrowed(rows))
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


OTHERWISE = {"layers": 2, "ad_loss": "squared", "decoder_input": "embedding"}


@pytest.mark.parametrize("changes", [{}, OTHERWISE], ids=str)
@pytest.mark.parametrize("objectives", ["AE", "CE", "AD", "CD", ALL])
def test_padding_to_a_bucket_is_exact(double, objectives, changes):
    data = made_up_skeletons()
    packed, padded = (skeletons(objectives, data=data, **changes) for _ in range(2))
    as_recorded(padded)
    more = 0
    for _ in range(12):
        torch.testing.assert_close(padded.step(), packed.step(), rtol=1e-10, atol=1e-12)
        assert padded.bucket in (5, 10, 12) and padded.bucket - 5 < packed.bucket <= padded.bucket
        more += padded.bucket > packed.bucket
    assert more > 3 and padded.sequence_dictionary.entries.dtype == torch.float64
    for part in ("model", "keys", "dictionary", "sequence_dictionary"):
        states = (getattr(fast, part).state_dict().values() for fast in (padded, packed))
        for own, other in zip(*states, strict=True):
            torch.testing.assert_close(own, other, rtol=1e-7, atol=1e-10)


# ---------------------------------------------------------------------------------------------- what is handed over


def test_values_that_stay_lie_where_the_last_one_of_their_name_and_shape_lay():
    given, places = Buffers(CPU, stay=True), []
    floats = torch.tensor([1.5, 2.5, 3.5])
    rows = [torch.arange(3), torch.arange(4), torch.arange(3) + 7, floats, torch.arange(4) * 2]
    for value in rows:
        given["rows"] = value
        assert torch.equal(given["rows"], value) and given["rows"].dtype == value.dtype
        assert given["rows"] is given.tensor("rows") and given["rows"] is not value
        places.append(given["rows"].data_ptr())
    assert places[0] == places[2] and places[1] == places[4] and len(set(places)) == 3
    given["other"] = rows[0]
    assert given["other"].data_ptr() not in places and torch.equal(given["rows"], rows[4])
    rows[4].fill_(0)  # what was handed over is a copy
    assert given["rows"].tolist() == [0, 2, 4, 6]


def test_what_is_not_recorded_on_cuda_is_called_and_the_reason_is_said_once(capsys, monkeypatch):
    for count in (1, 2):
        recorded = Recorded(lambda count=count: torch.tensor(count), torch.device("cuda"), reason="of a test")
        assert [recorded(bucket).item() for bucket in ((), None, ())] == [count] * 3
    assert capsys.readouterr().err == "steps are taken as they are and not recorded: of a test\n"
    monkeypatch.setenv("REPRO_RECORD", "0")
    assert Recorded(lambda: torch.tensor(3), torch.device("cuda"), reason="asked for")(()).item() == 3
    assert capsys.readouterr().err == ""


@pytest.fixture
def on_cpu(monkeypatch):
    """A way to make what records on a CPU, where torch's switches do nothing and a graph is what this test says."""
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)
    monkeypatch.setattr("repro.run.recorded.warn_once", lambda message: print(message, file=sys.stderr))

    def make(compute):
        step = Recorded(compute, CPU)
        step.records = True
        return step

    return make


@pytest.mark.parametrize(("said", "waits"), [
    ("Synchronization debug mode is a prototype feature and does not yet detect all synchronizing operations", False),
    ("called a synchronizing CUDA operation", True),
    ("of something else", False),
])
def test_a_step_waits_if_torch_says_so_of_it_and_not_if_torch_speaks_of_its_own_mode(on_cpu, capsys, said, waits):
    step = on_cpu(lambda: warnings.warn(said, stacklevel=1) or torch.ones(1))
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        step._watched(())
    assert step.records is not waits and ("waits for the device" in capsys.readouterr().err) is waits
    assert [str(warning.message) for warning in shown] == ([said] if "else" in said else [])


def test_a_recording_that_fails_is_closed_and_steps_go_on_as_they_are(on_cpu, monkeypatch, capsys):
    calls, log = [], []

    class Graph:
        def __init__(self):
            log.append("made")

        def capture_begin(self, *pool, **mode):
            log.append("begun")

        def capture_end(self):
            log.append("ended")
            raise RuntimeError("the capture is void")  # so torch says of one that something went wrong in

    def compute():
        calls.append(log.count("begun"))
        if log and log[-1] == "begun":
            raise RuntimeError("out of memory")
        return torch.tensor(float(len(calls)))

    for name, value in {"CUDAGraph": Graph, "graph_pool_handle": lambda: None, "memory_reserved": lambda device: 0,
                        "memory_allocated": lambda device: 0, "mem_get_info": lambda device: (1, 1)}.items():
        monkeypatch.setattr(torch.cuda, name, value)
    step = on_cpu(compute)
    values = [(step._taken(()) if step.records else step.compute()).item() for _ in range(6)]
    assert log == ["made", "begun", "ended"] and not step.records and not step.recordings
    assert values == [1, 2, 3, 5, 6, 7]  # the fourth was tried and taken again
    assert "out of memory" in capsys.readouterr().err


def test_a_learner_that_was_trained_is_let_go_of_with_its_recordings(tmp_path):
    learner = skeletons()
    gone = weakref.ref(learner)
    gc.disable()
    try:
        finish(fit(learner, tmp_path, tqdm(disable=True)))
        del learner
        assert gone() is None
    finally:
        gc.enable()


def test_buckets_are_multiples_of_25_frames_or_the_longest_sequence(monkeypatch):
    monkeypatch.undo()
    data = made_up_skeletons(frames=60, shortest=2)
    fast = as_recorded(skeletons(data=data))
    assert int(data.lengths.max()) == 60
    buckets = set()
    for _ in range(fast.total_steps):
        fast.prepare()
        longest = int(data.lengths[fast.given["index"]].max())
        assert longest <= fast.bucket < longest + 25 and fast.bucket in (25, 50, 60)
        buckets.add(fast.bucket)
    assert buckets == {25, 50, 60}
