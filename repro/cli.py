"""The command line: `repro ...` or `python3 -m repro ...`; `repro --debug ...` shows where an error comes from.

What takes seconds to import (torch, pandas, matplotlib) is imported by the commands that need it: help is quick.
"""

import json
import math
import shutil
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from repro import papers
from repro.data import manifest, present
from repro.data.disk import acquire
from repro.recipe import choose, entry_name, in_words, parse_number
from repro.run.store import Store

PLAIN = {"no_args_is_help": True, "rich_markup_mode": None}  # rich takes as long to import as all else
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__, **PLAIN)
data_app = typer.Typer(**PLAIN, help="Data sets: what is declared and what is here.")
results_app = typer.Typer(**PLAIN, help="Finished cells.")
app.add_typer(data_app, name="data")
app.add_typer(results_app, name="results")
NAMES = " | ".join(papers.lines())
STOPPED = 130                 # the status that typer ends with at Ctrl-C
PREPARED = "ntu | kinetics700 | kinetics_sound | audioset | ucf101 | hmdb51 | esc50"
FREE = {"allow_extra_args": True, "ignore_unknown_options": True}  # fields of recipes are options too
Table = Annotated[str, Argument(help=NAMES)]
Preset = Annotated[str, Option(help="auto | paper | quick | smoke")]
Variant = Annotated[str, Option(help="where paper and released code disagree, by name")]


def main() -> None:
    """Run the command line; an error a reader can mend is a line and ends with status 2, its traceback with --debug.

    Memory that is not there ends with status 1, as nothing need be wrong with what was given.
    """
    debug = sys.argv[1:2] == ["--debug"]
    arguments = sys.argv[1 + debug :]
    try:
        first = arguments[0] if arguments else ""
        if first in papers.lines():
            raise ValueError(f"{first} is a table: repro run {first} trains it, repro recipe {first} says how")
        app(arguments)
    except SystemExit as end:
        if end.code == STOPPED:
            print("repro: stopped; nothing finished is lost, give the same command again to go on", file=sys.stderr)
        raise
    except (ValueError, TypeError, OSError, FloatingPointError, MemoryError) as error:
        if debug:
            traceback.print_exc()
        memory = isinstance(error, MemoryError)
        print(f"repro: {'out of memory ' * memory}{error}", file=sys.stderr)
        sys.exit(1 if memory else 2)


@app.command(context_settings=FREE, add_help_option=False)
def run(
    context: typer.Context,
    table: Annotated[str | None, Argument(help=NAMES)] = None,
    dataset: Annotated[str | None, Option(help="A name in `repro data list`; data of this package by default.")] = None,
    preset: Preset = "auto",
    seeds: Annotated[str, Option(help="Comma list; the table shows mean and std.")] = "0",
    device: Annotated[str, Option(help="auto | cpu | cuda")] = "auto",
    engine: Annotated[str, Option(help="auto | inline (this process) | local (processes) | dask (a cluster)")] = "auto",
    workers: Annotated[str, Option(help="auto, the number of processes, or the address of dask's scheduler")] = "auto",
    variant: Variant = "none",
    tensorboard: Annotated[bool, Option("--tensorboard", help="also write REPRO_RUNS/tensorboard")] = False,
    plan: Annotated[bool, Option("--plan", help="train nothing; print what it would cost")] = False,
    asked_for_help: Annotated[bool, Option("--help", help="Show this message; with TABLE its fields too.")] = False,
) -> None:
    """Train what is missing of a table and print it. Started again it continues; started twice, the two share it.

    With --plan it trains nothing, but takes a few steps of each recipe and prints what the table would cost here.

    Every field of the table's recipe is an option, listed by `repro run TABLE --help`: --epochs 30 sets it in all rows
    that use it, and several values sweep, --epochs 10,30,150.

    Image tables also train one cell on several devices: torchrun --nproc-per-node 8 -m repro run TABLE ...

    Example: repro run taxonomy --dataset ucla --preset quick --objectives random,CE,CE+AD --epochs 10,30
    """
    if asked_for_help:
        print(context.get_help())
        if table:
            print("\n".join(["", *_fields(table, dataset, preset, variant, every=True)]))
        return
    if table is None or table.startswith("-"):
        raise ValueError(f"{table or 'nothing'} stands where the table should: repro run TABLE ...; tables are {NAMES}")
    choose("table", table, papers.lines())
    fields = _further(context.args)
    choices = fields | {"preset": preset, "seeds": seeds, "device": device, "variant": variant}
    Store().require_usable()

    from repro.run import device as devices
    from repro.table import plan_table, run_table

    with devices.process_group(devices.resolve(device)):
        if plan:
            print(plan_table(table, dataset, engine=engine, workers=workers, **choices))
            return
        rows = run_table(table, dataset, engine=engine, workers=workers, tensorboard=tensorboard, **choices)
        if devices.first():
            if "departures" in rows:
                rows = rows.assign(departures=rows["departures"].map(in_words))
            print(rows.to_string(index=False, na_rep="-", float_format="{:.4g}".format))
            if preset == "smoke":
                print("preset smoke: steps that show that all runs; the numbers say nothing", file=sys.stderr)


@app.command(context_settings=FREE)
def recipe(
    context: typer.Context,
    table: Table,
    dataset: Annotated[str | None, Option(help="A name in `repro data list`; one of the paper's by default.")] = None,
    preset: Preset = "paper",
    variant: Variant = "none",
) -> None:
    """Print what a table trains: every field that a recipe uses, with its value and where that comes from.

    It is the table's recipe that uses most of its fields. Others are shown by options as for `repro run`: --objectives
    CE of skeletons, --method sce of images.

    Example: repro recipe taxonomy --dataset ucla --preset quick --objectives CE
    """
    choose("table", table, papers.lines())
    print("\n".join(_fields(table, dataset, preset, variant, **_further(context.args))))


@data_app.command("list")
def data_list() -> None:
    """Print every declared data set, whether it is here, and how to get it.

    Example: repro data list
    """
    for row in present.status():
        print(f"{row['name']:<12} {row['state']:<9} {row['title']}")
        copy = f"{row['copy']} has been taken in; --subset takes it" if row["copy"] else ""
        for line in filter(None, (row["path"], row["next_step"], copy)):
            print(f"{'':<23}{line}")


@data_app.command("download")
def data_download(name: Annotated[str, Argument(help="a data set with automatic access")]) -> None:
    """Fetch a data set into REPRO_DATA and check it.

    Example: repro data download cifar10
    """
    for path in present.download(name):
        print(path)
    if manifest.bundled(name):
        print(f"{name} is bundled and needs no download")


@data_app.command("import")
def data_import(
    name: Annotated[str, Argument(help="an image data set of `repro data list` whose pictures have one size")],
    file: Annotated[str, Argument(help=".npz of images and labels, or class folders (folder, zip, tar)")],
) -> None:
    """Take in your own copy of an image data set, or a part of it, to be used with --subset.

    An .npz holds x_train, y_train, x_test and y_test: uint8 images (n, height, width, 3) and class numbers. Class
    folders are train/CLASS/*.png and test/CLASS/*.png, or JPEG. Tiny-ImageNet may keep its own layout. One copy of a
    data set is kept at a time: another one replaces it.

    Example: repro data import cifar10 my_cifar.npz
    """
    from repro.image.data import describe, take_in

    Store().require_writable()
    print(describe(take_in(name, Path(file))))


@data_app.command("prepare")
def data_prepare(
    name: Annotated[str, Argument(help=f"{PREPARED}; the other sets are prepared when they are loaded")],
    pipeline: Annotated[str | None, Option(help="ntu: authors (the default) | predict_cluster")] = None,
    size: Annotated[str | None, Option(help="of recordings: 256 for paper, 64 for quick, pixels high (128)")] = None,
    subset: Annotated[bool, Option("--subset", help="Accept an incomplete distribution.")] = False,
    skip_bad: Annotated[bool, Option("--skip-bad", help="Leave out bad files (ntu: with --subset).")] = False,
    workers: Annotated[str, Option(help="auto (one per core), or the number of processes that read")] = "auto",
) -> None:
    """Read a large data set once and keep its arrays in REPRO_RUNS. Killed, it goes on when started again.

    Example: repro data prepare ntu
    """
    prepared = PREPARED.split(" | ")
    if name in manifest.names() and name not in prepared:
        raise ValueError(f"{name} needs no command: it is prepared when it is loaded; this is for {PREPARED}")
    choose("dataset", name, prepared)
    from repro.run.device import cores

    count = cores() if workers == "auto" else parse_number("workers", workers, least=1)
    shared = {"subset": subset, "skip_bad": skip_bad, "workers": count}
    if name == "ntu" and size is not None:
        raise ValueError("ntu has no option --size; its options are --pipeline")
    if name != "ntu" and pipeline is not None:
        raise ValueError(f"{name} has no option --pipeline; its options are --size")
    Store().require_writable()
    if name == "ntu":
        from repro.skeleton import ntu

        shared |= {"pipeline": pipeline} if pipeline else {}
        print("\n".join(ntu.describe(ntu.prepare(**shared))))
        return
    from repro.audiovisual import prepare  # numpy alone at first, decoders where they are used

    shared |= {"size": parse_number("size", size)} if size else {}
    print("\n".join(prepare.describe(prepare.prepare(name, **shared))))


@results_app.command("list")
def results_list() -> None:
    """Print every finished cell with its main measure: those of figures/cells.csv, then what is new in REPRO_RUNS.

    The measure is the accuracy of the linear probe; of cells that are fine-tuned instead, the accuracy on the first
    target; of others, the first number that they hold.

    Example: repro results list
    """
    from repro.run.export import exported, finished_cells, merged
    from repro.table import studies

    named_by = {name: study.recipe.named_by for name, study in studies().items()}
    known = exported()
    cells = merged(known, finished_cells(Store()))
    cells["new"] = ~(cells["key"] + cells["metrics"]).isin(known["key"] + known["metrics"])  # or measured again
    for cell in cells.sort_values("new", kind="stable").itertuples():
        recipe, metrics = json.loads(cell.recipe), json.loads(cell.metrics)
        metrics.pop("evaluation", None)  # its version
        numbers = {name: value for name, value in metrics.items() if not isinstance(value, str)}
        target = recipe.get("targets", "").partition(",")[0]
        measure = next((name for name in ("linear", target, *numbers) if name in numbers), "")
        trained = entry_name(recipe.get(named_by.get(cell.study), ""), json.loads(cell.changes) or {})
        where = f"{cell.key}  {cell.study:<9} {cell.dataset:<14} {cell.preset:<6} version {cell.version}"
        number = f"{measure:<16} {numbers.get(measure, math.nan):6.2f}"
        origin = "new" if cell.new else "exported"
        print(f"{where}  {origin:<8}  seed {cell.seed}  {number}  {trained}")


@results_app.command("export")
def results_export() -> None:
    """Merge the finished cells of REPRO_RUNS into figures/cells.csv (smoke runs left out), and the logs of figures.

    Of one cell the newest counts: what you trained again takes the place of what was there.
    The file is that of the checkout, or of the current folder where this package is installed otherwise; it is printed.

    Example: repro results export
    """
    from repro.run.export import export, finished_cells, read_cells

    path, store = manifest.project_root() / "figures" / "cells.csv", Store()
    with acquire(manifest.project_root() / ".lock", -1):  # two exports at once would each lose what the other adds
        before, finished = read_cells(path), finished_cells(store)
        cells, smoke = export(finished, path), sum(finished["preset"] == "smoke")
        left_out = f"; left out, of smoke runs: {smoke}" if smoke else ""
        replaced = len(before) - len(before.merge(cells, on=["key", "metrics", "cost"]))
        again = f", {replaced} in place of what was there" if replaced else ""
        print(f"{path}: {len(cells)} cells, {len(cells) - len(before)} of them new{again}{left_out}")
        for log in papers.export_logs(cells, store, path.parent):
            print(log)


@results_app.command("weights")
def results_weights(
    key: Annotated[str, Argument(help="of a finished cell of images or skeletons, see `repro results list`")],
    output: Annotated[Path | None, Option(help="the file to write; KEY.safetensors by default")] = None,
) -> None:
    """Write the trained encoder of a cell as safetensors, its recipe and its input in the metadata, for use elsewhere.

    `repro.load(FILE)` reads it back: encoder(images or recordings) are features.

    Example: repro results weights 0123456789abcdef --output encoder.safetensors
    """
    from repro.weights import export

    print(export(key, output or Path(f"{key}.safetensors")))


@app.command()
def figures() -> None:
    """Redraw every figure in figures/, and the table or log behind it, from REPRO_RUNS and figures/. Trains nothing.

    Your cells stand among those that came with the project, the newest of one cell; `git checkout figures` undoes it.

    Example: repro figures
    """
    from repro.run.export import everything, finished_cells

    folder, store = manifest.project_root() / "figures", Store()
    with acquire(manifest.project_root() / ".lock", -1):  # as `results export`, which writes the same logs
        cells = everything(finished_cells(store))
        written = papers.export_logs(cells, store, folder)
    for path in [*written, *papers.redraw(cells, folder)]:
        print(path)


@app.command()
def report(
    output: Annotated[Path | None, Option(help="the folder to write; REPRO_RUNS/report by default")] = None,
) -> None:
    """Write tables, figures, claims, discrepancies, cells, notebooks and documents as one site; print its first page.

    Trains nothing. Executed notebooks are those in REPRO_RUNS/notebooks. A report that is there already is replaced.

    Example: repro report --output report
    """
    from repro.report.site import build
    from repro.table import by_study

    runs, tables = manifest.runs_root(), (papers.titles(), papers.named())
    found = runs / "notebooks", by_study(), *papers.judged()
    print(build(output or runs / "report", manifest.project_root(), *found, *tables))


@app.command()
def claims(
    paper: Annotated[str, Option(help=f"all | {' | '.join(papers.titles())}")] = "all",
) -> None:
    """Print the checkable sentences of the papers with their verdicts, then where the papers contradict themselves.

    A line each, broken on a terminal alone: id, verdict, level of the evidence, place and sentence in our words, in
    brackets what is compared, evidence, with the standard error (s.e.) of differences. Reads figures/ and REPRO_RUNS,
    trains nothing.

    Example: repro claims --paper SCE
    """
    from repro.report.claims import lines

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print("\n".join(lines(*papers.judged(paper=paper), width)))


@app.command()
def doctor() -> None:
    """Print versions, devices, data and the state of the runs, then what is wrong and what to do about it.

    Ends with status 1 if something is wrong. Data that are here are read and checked; nothing is changed.

    Example: repro doctor
    """
    from repro.doctor import examined

    if examined(print):
        raise typer.Exit(1)


def _fields(
    name: str, dataset: str | None, preset: str, variant: str, *, every: bool = False, **fields: str
) -> list[str]:
    """A line for each field of what a table trains: name, value, source; of `every` field, or of those it uses."""
    from repro.table import find

    table = find(name)
    rows = table.described(dataset, preset, variant, every=every, **fields)
    width = max(len(field) for field, *_ in rows)
    lines = [
        f"{field:<{width}}  {value!s:<12}  {source}{'' if field in table.study.fields else ', no option'}"
        for field, value, source in rows
    ]
    allowed = {"dataset": table.datasets, table.study.recipe.named_by: table.known_methods}
    return [*lines, *(f"{name} is one of: {', '.join(values)}" for name, values in allowed.items())]


def _further(arguments: list[str]) -> dict[str, str]:
    """Options and their values as they stand on the command line: "--epochs 30", "--epochs=30", "--redrawn".

    Raises:
        ValueError: if one is no option, or is there twice.
    """
    given: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if not option.startswith("--"):
            raise ValueError(f"{option!r} is no option; options begin with --, and a list has commas and no spaces")
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else "true"
        name = option[2:].replace("-", "_")
        if name in given:
            raise ValueError(f"{option} is there twice; give its values as a comma list")
        given[name] = value
    return given
