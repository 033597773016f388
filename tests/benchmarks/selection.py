"""Time and memory of active selection beside their limits, plain seeding and scikit-learn on materialised gradients.

    python3 -m tests.benchmarks.selection [--device auto] [--threads 2] [--repeats 5]

At CM-ACC's size: a pool of 38,400, 128 queries, 512 features, 128 rows to choose. Ours is the whole of `select`, with
the posteriors and their factors. Plain seeding is `kmeans_plusplus` over as many points of 256 features. What is
compared is run in turns within one process: times are the best of the turns, ratios least, median and most of them;
on a busy machine look at the CPU time of one thread. On CUDA the time is that between two events on the device, which
includes what it waits for the host. Scikit-learn, on the CPU alone, gets the gradients multiplied out before the clock
starts, at a size at which they fit. Memory is what all tensors made within a call need at once: on the CPU counted by
torch's profiler, on CUDA by its allocator. The last lines put the figures beside their limits, of which that of the
CPU's time is for two cores.
"""

import argparse
import functools
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from repro.contrast.negatives import gradient_factors, kmeans_plusplus, select
from repro.run.device import hardware, resolve
from tests.benchmarks.spread import ratios

POOL, QUERIES, FEATURES, CHOSEN, PLAIN_FEATURES = 38400, 128, 512, 128, 256
SMALL_POOL, SMALL_FEATURES = 2000, 64
SECONDS = {"cpu": 1.3, "cuda": 0.02}  # limits of one selection
MEGABYTES, TIMES_PLAIN = 300, 3


def made_up(pool: int, features: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Candidates, queries and query inputs, with logits of a standard deviation of about 3."""
    draws = torch.Generator().manual_seed(0)
    candidates = torch.randn(pool, features, generator=draws)
    inputs = torch.randn(QUERIES, features, generator=draws)
    weight = torch.randn(features, features, generator=draws) * 3 / features
    return candidates.to(device), (inputs @ weight.T).to(device), inputs.to(device)


def selection(
    device: torch.device,
    pool: int = POOL,
    chosen: int = CHOSEN,
    features: int = FEATURES,
    strategy: str = "gradient",
    **given: object,
) -> Callable[[], Tensor]:
    """A call of `select` over made-up features."""
    tensors = made_up(pool, features, device)
    excluded = torch.zeros(pool, dtype=torch.bool, device=device)
    generator = torch.Generator(device).manual_seed(0)
    given |= {"n_select": chosen, "excluded": excluded, "generator": generator}
    return functools.partial(select, strategy, *tensors, **given)


def plain(device: torch.device) -> Callable[[], Tensor]:
    """A call of `kmeans_plusplus` over points."""
    points = torch.randn(POOL, PLAIN_FEATURES, generator=torch.Generator().manual_seed(0)).to(device)
    return functools.partial(kmeans_plusplus, points, n_select=CHOSEN, generator=torch.Generator(device).manual_seed(0))


def sklearn_on_materialised() -> Callable[[], object]:
    """A call of scikit-learn's function over the outer products."""
    from sklearn.cluster import kmeans_plusplus as sklearn_kmeans_plusplus

    a, b = gradient_factors(*made_up(SMALL_POOL, SMALL_FEATURES, torch.device("cpu")))
    materialised = torch.einsum("pd,pe->pde", a, b).flatten(1).numpy()
    return functools.partial(sklearn_kmeans_plusplus, materialised, CHOSEN, random_state=0, n_local_trials=1)


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Time of one call: on CUDA between two events on the device, else on the wall."""
    if device.type != "cuda":
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000


def turns(
    works: dict[str, Callable[[], object]], repeats: int, device: torch.device
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Times and CPU times of every work, after a first call of each, in turns."""
    found, cpu = {name: [] for name in works}, {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            start_cpu = time.process_time()
            taken = seconds(work, device)
            if turn > 0:
                found[name].append(taken)
                cpu[name].append(time.process_time() - start_cpu)
    return found, cpu


def peak(work: Callable[[], object], device: torch.device) -> float:
    """Most megabytes of tensors made within a call that live at once."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        return (torch.cuda.max_memory_allocated(device) - before) / 1e6
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    level = highest = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        level += event.nbytes()
        highest = max(highest, level)
    return highest / 1e6


def beside_sklearn(repeats: int) -> None:
    """Print ours and scikit-learn's time at a size at which the gradients fit."""
    cpu_device = torch.device("cpu")
    small = {
        "ours": selection(cpu_device, SMALL_POOL, features=SMALL_FEATURES), "scikit-learn": sklearn_on_materialised()
    }
    taken, cpu = turns(small, repeats, cpu_device)
    print(f"pool {SMALL_POOL}, {SMALL_FEATURES} features; scikit-learn on materialised gradients")
    for name in small:
        print(line(name, taken, cpu))


def line(name: str, taken: dict[str, list[float]], cpu: dict[str, list[float]]) -> str:
    """Best times of a work, and the ratios to ours."""
    times = f"{min(taken[name]):9.4f} s{min(cpu[name]):9.4f} s CPU"
    return f"{name:<20}{times}   {ratios(taken[name], taken['ours'])} x ours"


def main() -> None:
    """Print a line per comparison, then what has a limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    device = resolve(options.device)
    torch.set_num_threads(options.threads)
    print(f"{hardware(device)['device']}, {options.threads} threads, best of {options.repeats}")
    if device.type == "cpu":
        beside_sklearn(options.repeats)

    print(f"pool {POOL}, {FEATURES} features")
    works = {
        "ours": selection(device),
        "plain": plain(device),
        "half the pool": selection(device, pool=POOL // 2),
        "half the seeds": selection(device, chosen=CHOSEN // 2),
        "half the features": selection(device, features=FEATURES // 2),
        "normalised queries": selection(device, normalised=True),
        "feature": selection(device, strategy="feature"),
    }
    taken, cpu = turns(works, options.repeats, device)
    memory = {name: peak(work, device) for name, work in works.items()}
    for name in works:
        print(f"{line(name, taken, cpu)}{memory[name]:8.0f} MB")
    print(f"time of ours: {min(taken['ours']):.4f} s, at most {SECONDS[device.type]} s")
    print(f"memory of ours beyond the inputs: {memory['ours']:.0f} MB, at most {MEGABYTES} MB")
    beside = ratios(taken["ours"], taken["plain"])
    print(f"ours / plain seeding of {PLAIN_FEATURES} features: {beside}, at most {TIMES_PLAIN}")


if __name__ == "__main__":
    main()
