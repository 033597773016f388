"""Time and memory of active selection, beside plain seeding and beside scikit-learn on materialised gradients.

    python3 -m tests.benchmarks.selection [--threads 2] [--repeats 5]

At CM-ACC's size: a pool of 38,400, 128 queries, 512 features, 128 rows to choose. Ours is the whole of `select`, with
the posteriors and their factors. Plain seeding is `kmeans_plusplus` over as many points of 256 features. What is
compared is run in turns within one process, and the best of the turns counts; on a busy machine look at the CPU time
of one thread. Scikit-learn gets the gradients multiplied out before the clock starts, at a size at which they fit.
Memory is what all tensors made within a call need at once, counted by torch's profiler. The last line is the one
number: ours in units of plain seeding.
"""

import argparse
import functools
import time
from collections.abc import Callable

import torch
from sklearn.cluster import kmeans_plusplus as sklearn_kmeans_plusplus
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from repro.contrast.negatives import gradient_factors, kmeans_plusplus, select

POOL, QUERIES, FEATURES, CHOSEN, PLAIN_FEATURES = 38400, 128, 512, 128, 256
SMALL_POOL, SMALL_FEATURES = 2000, 64


def made_up(pool: int, features: int) -> tuple[Tensor, Tensor, Tensor]:
    """Candidates, queries and query inputs, with logits of a standard deviation of about 3."""
    draws = torch.Generator().manual_seed(0)
    candidates = torch.randn(pool, features, generator=draws)
    inputs = torch.randn(QUERIES, features, generator=draws)
    weight = torch.randn(features, features, generator=draws) * 3 / features
    return candidates, inputs @ weight.T, inputs


def selection(
    pool: int = POOL, chosen: int = CHOSEN, features: int = FEATURES, strategy: str = "gradient", **given: object
) -> Callable[[], Tensor]:
    """A call of `select` over made-up features."""
    tensors = made_up(pool, features)
    excluded = torch.zeros(pool, dtype=torch.bool)
    generator = torch.Generator().manual_seed(0)
    given |= {"n_select": chosen, "excluded": excluded, "generator": generator}
    return functools.partial(select, strategy, *tensors, **given)


def plain() -> Callable[[], Tensor]:
    """A call of `kmeans_plusplus` over points."""
    points = torch.randn(POOL, PLAIN_FEATURES, generator=torch.Generator().manual_seed(0))
    return functools.partial(kmeans_plusplus, points, n_select=CHOSEN, generator=torch.Generator().manual_seed(0))


def sklearn_on_materialised() -> Callable[[], object]:
    """A call of scikit-learn's function over the outer products."""
    a, b = gradient_factors(*made_up(SMALL_POOL, SMALL_FEATURES))
    materialised = torch.einsum("pd,pe->pde", a, b).flatten(1).numpy()
    return functools.partial(sklearn_kmeans_plusplus, materialised, CHOSEN, random_state=0, n_local_trials=1)


def seconds(works: dict[str, Callable[[], object]], repeats: int) -> tuple[dict[str, float], dict[str, float]]:
    """Best wall time and best CPU time of every work, after a first call of each, in turns."""
    wall, cpu = dict.fromkeys(works, float("inf")), dict.fromkeys(works, float("inf"))
    for turn in range(repeats + 1):
        for name, work in works.items():
            start, start_cpu = time.perf_counter(), time.process_time()
            work()
            if turn > 0:
                wall[name] = min(wall[name], time.perf_counter() - start)
                cpu[name] = min(cpu[name], time.process_time() - start_cpu)
    return wall, cpu


def peak(work: Callable[[], object]) -> int:
    """Most bytes of tensors made within a call that live at once."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    level = highest = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        level += event.nbytes()
        highest = max(highest, level)
    return highest


def main() -> None:
    """Print a line per comparison; the ratio comes last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{options.threads} threads, best of {options.repeats}")

    small = {"ours": selection(SMALL_POOL, features=SMALL_FEATURES), "scikit-learn": sklearn_on_materialised()}
    wall, cpu = seconds(small, options.repeats)
    print(f"pool {SMALL_POOL}, {SMALL_FEATURES} features; scikit-learn on materialised gradients")
    for name in small:
        print(f"{name:<20}{wall[name]:8.3f} s{cpu[name]:8.3f} s CPU{wall[name] / wall['ours']:8.2f} x ours")

    print(f"pool {POOL}, {FEATURES} features")
    works = {
        "ours": selection(),
        "plain": plain(),
        "half the pool": selection(pool=POOL // 2),
        "half the seeds": selection(chosen=CHOSEN // 2),
        "half the features": selection(features=FEATURES // 2),
        "normalised queries": selection(normalised=True),
        "feature": selection(strategy="feature"),
    }
    wall, cpu = seconds(works, options.repeats)
    for name, work in works.items():
        print(
            f"{name:<20}{wall[name]:8.3f} s{cpu[name]:8.3f} s CPU{wall[name] / wall['ours']:8.2f} x ours"
            f"{peak(work) / 1e6:8.0f} MB"
        )
    print(f"ours / plain seeding of {PLAIN_FEATURES} features: {wall['ours'] / wall['plain']:.2f}")


if __name__ == "__main__":
    main()
