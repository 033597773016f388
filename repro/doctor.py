"""What is wrong when something does not work, and what to do about it: folders, locks, data, runs and results."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock

from repro.data import files, manifest
from repro.data.disk import acquire
from repro.run import device as devices
from repro.run.store import Store, everything

Say = Callable[[str], object]


def examined(say: Say) -> int:
    """Say where this is and what is read meanwhile, then what is wrong; returns how many problems there are."""
    machine = devices.hardware(devices.resolve("auto"))
    say(f"repro {devices.commit()}, python {machine['python']}, torch {machine['torch']}, {machine['device']}, "
        f"{machine['cores']} cores")
    problems: list[str] = []
    for examine in (examined_folder, examined_data, examined_runs):
        try:
            problems += examine(say)
        except (ValueError, OSError) as error:  # which says what to do, unless it is the system's
            remedy = "; give yourself the right to read it, or point REPRO_DATA and REPRO_RUNS elsewhere"
            problems.append(f"{error}{remedy if getattr(error, 'errno', None) else ''}")
    problems = list(dict.fromkeys(problems))  # several parts read what one of them could not
    say("\n  ".join([f"problems: {len(problems)}", *problems]))
    return len(problems)


def examined_folder(say: Say) -> Iterator[str]:
    """Whether runs can be written, and a lock that is held keeps another one away."""
    runs = manifest.runs_root()
    say(f"REPRO_RUNS {runs}")
    if (runs / "cells").is_dir():
        yield (f"{runs}/cells holds runs as they were named before; rename it to {runs}/runs, and in the files there "
               "`key` to `id` (recipe.json) and `_unseen` to `_without_copies` (result.json, probes.jsonl)")
    Store(runs).require_writable()
    there = next(folder for folder in (runs, *runs.parents) if folder.exists())
    with tempfile.TemporaryDirectory(prefix=".lock-", dir=there) as folder, acquire(Path(folder) / "lock"):
        try:
            with acquire(Path(folder) / "lock"):
                yield (f"{there} is on a file system, or mounted so, that locks do nothing: two processes would train "
                       "one run at once; set REPRO_RUNS to a folder on another one")
        except filelock.Timeout:
            say("locks: held")


def examined_data(say: Say) -> Iterator[str]:
    """Which data sets that are here are not as declared; their contents are read where that can be checked."""
    say(f"REPRO_DATA {manifest.data_root()}")
    for row in files.status():
        declared = manifest.load_manifest(row["name"])
        if row["state"] == "differs":
            yield row["next_step"]
        if row["state"] == "present" and any(archive.digest for archive in declared.files):
            say(f"reading {declared.name}")
            try:
                files.verified_members(declared, manifest.data_root())
            except (ValueError, OSError) as error:
                yield str(error)


def examined_runs(say: Say) -> list[str]:
    """Which finished runs, of REPRO_RUNS and of figures/runs.csv, are left out, or were trained by other code."""
    from repro.experiments import by_study, of_today, warn_of_other_code

    problems: list[str] = []
    runs = of_today(everything(problems.append), say)
    ours = sum(runs["whose"] == "ours")
    say(f"runs: {len(runs) - ours} of REPRO_RUNS, {ours} of figures/runs.csv")
    by_study(runs, problems.append)
    warn_of_other_code(runs, problems.append)
    return problems
