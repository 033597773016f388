"""What is wrong when something does not work, and what to do about it: folders, locks, data, runs and results."""

import contextlib
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from repro.data import files, manifest
from repro.data.disk import abandoned, acquire
from repro.run import device as devices
from repro.run.fit import check_step, read_checkpoint
from repro.run.store import Store, everything, exported, finished_cells, merged, parse_json

HELD = 3  # the status of a process that finds a lock held
ACQUIRE = f"""import filelock, sys
try:
    filelock.FileLock(sys.argv[1], fallback_to_soft=False).acquire(timeout=0)
except filelock.Timeout:
    sys.exit({HELD})"""
Say = Callable[[str], object]


def examined(say: Say) -> int:
    """Say where this is and what is read meanwhile, then what is wrong; returns how many problems there are."""
    machine = devices.hardware(devices.resolve("auto"))
    say(f"repro {devices.commit()}, python {machine['python']}, torch {machine['torch']}, {machine['device']}, "
        f"{machine['cores']} cores")
    problems: list[str] = []
    for examine in (examined_folder, examined_data, examined_cells, examined_means, examined_checkpoints):
        try:
            problems += examine(say)
        except ValueError as error:  # of a folder, a manifest or figures/cells.csv, which says what to do
            problems.append(str(error))
        except OSError as error:
            remedy = "give yourself the right to read it, or point REPRO_DATA and REPRO_RUNS elsewhere"
            problems.append(f"{error}; {remedy}")
    problems = list(dict.fromkeys(problems))  # several parts read what one of them could not
    say("\n  ".join([f"problems: {len(problems)}", *problems]))
    return len(problems)


def examined_folder(say: Say) -> Iterator[str]:
    """Whether runs can be written, a lock that this process holds keeps another one away, and what killed ones left."""
    runs = manifest.runs_root()
    say(f"REPRO_RUNS {runs}")
    try:
        Store(runs).require_writable()
    except OSError as error:
        yield str(error)
        return
    there = next(folder for folder in (runs, *runs.parents) if folder.exists())
    with tempfile.TemporaryDirectory(prefix=".lock-", dir=there) as folder, acquire(Path(folder) / "lock"):
        other = subprocess.run([sys.executable, "-c", ACQUIRE, f"{folder}/lock"], capture_output=True, check=False)
    if other.returncode == 0:
        yield (f"{there} is on a file system, or mounted so, that locks do nothing: two processes would train one "
               "cell at once; set REPRO_RUNS to a folder on another one")
    say(f"locks: {'held against another process' if other.returncode == HELD else other.stderr.decode()}")
    left = [runs / name for name in (".report", "figures/.figures")]
    for folder in filter(abandoned, [*left, manifest.project_root() / "figures" / ".figures"]):
        say(f"left by a killed command, removed by the next of its kind: {folder}")
    for folder in files.unneeded():
        say(f"unpacked from an archive that is gone or another one now, or not to the end; delete it: {folder}")


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


def examined_cells(say: Say) -> Iterator[str]:
    """Which finished cells, of the runs and of figures/cells.csv, are left out, or were trained by other code."""
    from repro.experiments import of_today, studies

    problems: list[str] = []
    finished = finished_cells(Store(), problems.append)
    say(f"cells: {len(finished)} finished can be read")
    cells = of_today(merged(exported(problems.append), finished), say)
    say(f"cells: {len(cells)} of figures/cells.csv and of the runs")
    yield from problems
    for cell in cells.to_dict("records"):
        try:
            studies()[cell["study"]].stored_recipe(cell)
        except KeyError:
            yield (f"the cell {cell['key']} is of no study that there is, {cell['study']!r}; take the version that "
                   "wrote it")
        except ValueError as error:
            yield str(error)
    yield from filter(None, (study.of_other_code(finished) for study in studies().values()))


def examined_means(say: Say) -> Iterator[str]:
    """Which seeds another evaluation measured, and, said alone, where seeds of one recipe ran in different ways."""
    from repro.experiments import studies
    from repro.report.text import MEASURE
    from repro.table import compositions

    cells = everything(lambda problem: None)  # what is damaged has been named
    for study in studies().values():
        tidy, recipes = study.tidy(cells), Counter()
        if tidy.empty:
            continue
        alike = tidy[[*study.fields, "digest", "version"]].astype(str).agg(" ".join, axis="columns")
        for (_, dataset), runs in tidy.groupby([alike, "dataset"], sort=False):
            averaged = study.averaged(runs["evaluation"], runs["dataset"])
            if others := [*runs["key"][~averaged]]:
                yield f"another evaluation measured {', '.join(others)}, which are in no mean; {MEASURE}"
            recipes.update((dataset, remark) for remark in compositions(runs))
        for (dataset, remark), count in recipes.items():
            say(f"{study.name} on {dataset}: {remark}, of {count} recipe{'s' * (count > 1)}")


def examined_checkpoints(say: Say) -> Iterator[str]:
    """Which checkpoints of the runs cannot be read, or are beyond the training that their log tells."""
    for path in sorted(Store().root.glob("cells/**/checkpoint.pt")):
        try:
            state = read_checkpoint(path)
        except FileNotFoundError:  # it is being replaced
            continue
        except ValueError as error:
            yield (f"{path} is damaged ({error}); an unfinished cell will begin at an earlier state, a finished one "
                   "has lost its weights")
            continue
        try:
            with contextlib.suppress(OSError, LookupError):
                line, *_ = path.with_name("progress.jsonl").read_text(encoding="utf-8").splitlines()
                check_step(path.parent, state, parse_json(line)["of"])
        except ValueError as error:
            yield str(error)
