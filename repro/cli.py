"""The command line: `repro ...` or `python3 -m repro ...`."""

import inspect
import json
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from repro import download, manifest, present
from repro.recipe import choose, closest, parse_number
from repro.report import logs, stored
from repro.run import device as devices
from repro.run.export import export, read_cells
from repro.run.store import Store, acquire
from repro.run.table import Table, planned
from repro.skeleton import ntu_prepare

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
data_app = typer.Typer(no_args_is_help=True, help="Data sets: what is declared and what is here.")
results_app = typer.Typer(no_args_is_help=True, help="Finished cells.")
app.add_typer(data_app, name="data")
app.add_typer(results_app, name="results")
NAMES = "taxonomy | encoder_collapse | image_methods | temperature_grid | positive_keys | similarity_variance"
NAMES += " | cross_modal | ohem_vs_active | dictionary_size | mutual_information | transfer | category_diversity"
METHODS = "a list; encoder_collapse: random,AE; image_methods: random,supervised,moco,ressl,sce,jcl,vanilla"
METHODS += "; dictionary_size: smoco,xmoco,cmacc; mutual_information: scratch,supervised too"
METHODS += "; transfer: scratch,supervised too"
SHARED = ("table", "preset", "seeds", "device", "engine", "workers", "plan")  # parameters of `run` that all tables have
STOPPED = 130                 # the status that typer ends with at Ctrl-C
PREPARED = "ntu | kinetics700 | kinetics_sound | audioset | ucf101 | hmdb51 | esc50"


def main() -> None:
    """Run the command line; an error a reader can mend is printed without a traceback and ends with status 2.

    So does memory that is not there, with status 1, as nothing need be wrong with what was given.
    """
    try:
        app()
    except SystemExit as end:
        if end.code == STOPPED:
            print("repro: stopped; nothing finished is lost, give the same command again to go on", file=sys.stderr)
        raise
    except (ValueError, TypeError, OSError, FloatingPointError) as error:
        print(f"repro: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError as error:
        what = f"out of memory ({error})" if f"{error}" else "out of memory"
        print(f"repro: {what}; end other programs, or go on where there is more memory", file=sys.stderr)
        sys.exit(1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context,
    table: Annotated[str, Argument(help=NAMES)],
    dataset: Annotated[str | None, Option(help="A name in `repro data list`; embedded data by default.")] = None,
    preset: Annotated[str, Option(help="auto | paper | quick | smoke")] = "auto",
    seeds: Annotated[str, Option(help="Comma list; the table shows mean and std.")] = "0",
    device: Annotated[str, Option(help="auto | cpu | cuda")] = "auto",
    engine: Annotated[str, Option(help="auto | inline (this process) | local (processes) | dask (a cluster)")] = "auto",
    workers: Annotated[str, Option(help="auto, the number of processes, or the address of dask's scheduler")] = "auto",
    plan: Annotated[bool, Option("--plan", help="train nothing; print what it would cost")] = False,
    objectives: Annotated[str | None, Option(help="taxonomy: all, or a list such as CE,CE+AD")] = None,
    protocol: Annotated[str | None, Option(help="taxonomy: a split of the data set")] = None,
    layers: Annotated[str | None, Option(help="taxonomy: one depth; encoder_collapse: a comma list")] = None,
    methods: Annotated[str | None, Option(help=METHODS)] = None,
    temperatures: Annotated[str | None, Option(help="temperature_grid, positive_keys: a comma list")] = None,
    key_temperatures: Annotated[str | None, Option(help="temperature_grid: a comma list")] = None,
    keys: Annotated[str | None, Option(help="positive_keys: a comma list")] = None,
    strengths: Annotated[str | None, Option(help="positive_keys: a comma list")] = None,
    approaches: Annotated[str | None, Option(help="cross_modal: a list such as xmoco,cmacc_plain,cmacc")] = None,
    samplers: Annotated[str | None, Option(help="ohem_vs_active, category_diversity: a comma list")] = None,
    batches: Annotated[str | None, Option(help="ohem_vs_active, category_diversity: a comma list")] = None,
    dictionaries: Annotated[str | None, Option(help="dictionary_size: a list, multiples of the batch")] = None,
    characters: Annotated[str | None, Option(help="mutual_information: a comma list of numbers to 9")] = None,
    trunks: Annotated[str | None, Option(help="transfer: r3d18, r2plus1d18 or both")] = None,
    targets: Annotated[str | None, Option(help="of CM-ACC: where to fine-tune, such as ucf101,esc50")] = None,
    split: Annotated[str | None, Option(help="transfer: official splits or folds, 1,2,3; 0, their mean")] = None,
    variant: Annotated[str | None, Option(help="where paper and code disagree")] = None,
    subset: Annotated[bool | None, Option("--subset", help="accept a part of the data set")] = None,
) -> None:
    """Train what is missing of a table and print it. Started again it continues; started twice, the two share it.

    With --plan it trains nothing, but takes a few steps of each recipe and prints what the table would cost here.

    Any field of a table's recipe (`repro recipe TABLE`) is an option too, and sweeps where it is given several values.

    Image tables also train one cell on several devices: torchrun --nproc-per-node 8 -m repro run TABLE ...

    Example: repro run taxonomy --dataset ucla --preset quick --objectives random,CE,CE+AD --epochs 10,30
    """
    if table.startswith("-"):
        raise ValueError(f"{table} stands where the table should: repro run TABLE {table} ...; tables are {NAMES}")
    chosen = _table(table)
    # Options are parameters so that `--help` lists them; those of the table are handed on by name.
    given = {name: value for name, value in context.params.items() if name not in SHARED and value is not None}
    given |= _further(context.args)
    _check_options(table, given, inspect.signature(chosen.cells).parameters, _tables_with)
    choices = given | {"preset": preset, "seeds": seeds, "device": device}
    Store(manifest.runs_root()).require_usable()
    with devices.process_group(devices.resolve(device)):
        if plan:
            print(planned(chosen, choices, engine, workers))
            return
        made = chosen.run(engine=engine, workers=workers, **choices)
        if devices.first():
            print(made.to_string(index=False, na_rep="-", float_format="{:.4g}".format))


@app.command()
def recipe(
    table: Annotated[str, Argument(help=NAMES)],
    dataset: Annotated[str | None, Option(help="A name in `repro data list`.")] = None,
    preset: Annotated[str, Option(help="paper | quick | smoke")] = "paper",
    method: Annotated[str | None, Option(help="one of the table's methods or objectives")] = None,
    subset: Annotated[bool, Option("--subset", help="of a part of the data set")] = False,
) -> None:
    """Print what a table trains one method with: every hyper-parameter with its source, optimiser and views included.

    Example: repro recipe taxonomy --dataset ucla --preset quick --method CE
    """
    chosen = _table(table)
    usual_dataset, usual_method = chosen.example
    changes = {"subset": True} if subset else {}
    rows = chosen.described(preset, dataset or usual_dataset, method or usual_method, **changes)
    width = max(len(name) for name, _, _ in rows)
    for name, value, source in rows:
        print(f"{name:<{width}}  {value!s:<12}  {source}{'; varied by this table' * (name in chosen.varied)}")
    print(f"--method shows another one of: {', '.join(chosen.methods)}", file=sys.stderr)


@data_app.command("list")
def data_list() -> None:
    """Print every declared data set, whether it is here, and how to get it.

    Example: repro data list
    """
    for row in present.status():
        print(f"{row['name']:<12} {row['state']:<9} {row['title']}")
        for line in (row["path"], row["next_step"]):
            if line:
                print(f"{'':<23}{line}")
        if row["copy"]:
            print(f"{'':<23}{row['copy']} has been taken in; --subset takes it")


@data_app.command("download")
def data_download(name: Annotated[str, Argument(help="a data set with automatic access")]) -> None:
    """Fetch a data set into REPRO_DATA and check it.

    Example: repro data download cifar10
    """
    for path in download.download(name):
        print(path)
    if manifest.embedded(name):
        print(f"{name} is embedded and needs no download")


@data_app.command("import")
def data_import(
    name: Annotated[str, Argument(help="cifar10 | cifar100 | stl10 | tiny_imagenet")],
    file: Annotated[str, Argument(help=".npz of images and labels, or class folders (folder, zip, tar)")],
) -> None:
    """Take in your own copy of an image data set, or a part of it, to be used with --subset.

    An .npz holds x_train, y_train, x_test and y_test: uint8 images (n, height, width, 3) and class numbers. Class
    folders are train/CLASS/*.png and test/CLASS/*.png, or JPEG. Tiny-ImageNet may keep its own layout. One copy of a
    data set is kept at a time: another one replaces it. Your file stays as it is.

    Example: repro data import cifar10 my_cifar.npz
    """
    from repro.image.data import describe, take_in  # torchvision takes seconds to import

    if not file.strip():  # as a Path it would be the current folder
        raise ValueError(f"file={file!r} names no file; give an .npz, or class folders as a folder, zip or tar archive")
    Store(manifest.runs_root()).require_writable()
    before = manifest.copy_of(name)
    print(describe(take_in(name, Path(file))))
    if before not in (None, manifest.copy_of(name)):
        print(f"replaces {name} ({before.stem})")


@data_app.command("prepare")
def data_prepare(
    name: Annotated[str, Argument(help=f"{PREPARED}; the other sets are prepared when they are loaded")],
    pipeline: Annotated[str | None, Option(help="ntu: authors (the default) | predict_cluster")] = None,
    size: Annotated[str | None, Option(help="of recordings: height of pictures in pixels, usually 128")] = None,
    subset: Annotated[bool, Option("--subset", help="Accept an incomplete distribution.")] = False,
    skip_bad: Annotated[bool, Option("--skip-bad", help="Leave out bad files (ntu: with --subset).")] = False,
    workers: Annotated[str, Option(help="auto (one per core), or the number of processes that read")] = "auto",
) -> None:
    """Read a large data set once and keep its arrays in REPRO_RUNS. Killed, it goes on when started again.

    Example: repro data prepare ntu
    """
    choose("dataset", name, PREPARED.split(" | "))
    given = {name: value for name, value in {"pipeline": pipeline, "size": size}.items() if value is not None}
    _check_options(name, given, ("pipeline",) if name == "ntu" else ("size",))
    given |= {"size": parse_number("size", size, least=8)} if size is not None else {}
    count = devices.cores() if workers == "auto" else parse_number("workers", workers, least=1)
    shared = {"subset": subset, "skip_bad": skip_bad, "workers": count}
    Store(manifest.runs_root()).require_writable()
    if name == "ntu":
        print("\n".join(ntu_prepare.describe(ntu_prepare.prepare(**given, **shared))))
        return
    from repro.audiovisual import prepare  # numpy alone at first, decoders where they are used

    print("\n".join(prepare.describe(prepare.prepare(name, **given, **shared))))


@results_app.command("list")
def results_list() -> None:
    """Print every finished cell, exported or in REPRO_RUNS, with its main measure.

    That is the accuracy of the linear probe; of cells that are fine-tuned instead, the accuracy on the first target;
    of those that are trained for their negatives alone, how many categories these come from.

    Example: repro results list
    """
    for cell in stored.everything().itertuples():
        metrics = json.loads(cell.metrics)
        target, *_ = json.loads(cell.recipe).get("targets", "").split(",")
        measure = next(name for name in ("linear", target, "categories_video") if name in metrics)
        where = f"{cell.key}  {cell.table:<18} {cell.dataset:<14} {cell.preset:<6}"
        print(f"{where} seed {cell.seed}  {measure:<16} {metrics[measure]:6.2f}  {cell.entry}")


@results_app.command("export")
def results_export() -> None:
    """Merge the finished cells of REPRO_RUNS into figures/cells.csv (smoke runs left out), and the logs of figures.

    The file is that of the checkout, or of the current folder where this package is installed otherwise; it is printed.

    Example: repro results export
    """
    path, store = manifest.project_root() / "figures" / "cells.csv", Store(manifest.runs_root())
    with acquire(manifest.project_root() / ".lock", -1):  # two exports at once would each lose what the other adds
        before = len(read_cells(path))
        cells = export(store, path)
        left_out = sum(cell["preset"] == "smoke" for cell in store.finished())
        told = f"; left out, of smoke runs: {left_out}" if left_out else ""
        print(f"{path}: {len(cells)} cells, {len(cells) - before} of them new{told}")
        for log in logs.export(store, path.parent):
            print(log)


@results_app.command("evaluate")
def results_evaluate() -> None:
    """Measure finished cells of the taxonomy's tables in REPRO_RUNS again that an earlier version has evaluated.

    They are evaluated from their checkpoints; what their training cost stays as it is.

    Example: repro results evaluate
    """
    from repro.skeleton.reevaluate import evaluate_again

    store = Store(manifest.runs_root())
    store.require_writable()
    print(f"{evaluate_again(store, devices.resolve('auto'))} cells have new measures")


@results_app.command("weights")
def results_weights(
    key: Annotated[str, Argument(help="of a finished cell of an image table, see `repro results list`")],
    output: Annotated[Path | None, Option(help="the file to write; KEY.safetensors by default")] = None,
) -> None:
    """Write the trained encoder of an image cell as safetensors, its recipe in the metadata, for use elsewhere.

    `repro.image.model.load(FILE)` reads it back, `load_view(FILE)` what makes its input from images.

    Example: repro results weights 0123456789abcdef --output encoder.safetensors
    """
    from repro.image.cell import trained_model  # torchvision takes seconds to import
    from repro.image.model import save
    from repro.image.views import centred_view

    path = output or Path(f"{key}.safetensors")
    model, made_by = trained_model(key, Store(manifest.runs_root()))
    save(path, model, made_by.to_dict(), centred_view(made_by))
    print(path)


@app.command()
def figures() -> None:
    """Redraw every figure, and the table or log behind it, from REPRO_RUNS and figures/. Trains nothing.

    Example: repro figures
    """
    from repro.report import glm_figures  # matplotlib and statsmodels take seconds to import
    from repro.report.redraw import redraw

    folder = manifest.project_root() / "figures"
    written = logs.export(Store(manifest.runs_root()), folder)
    cells = stored.everything()
    for path in [*written, *redraw(cells, folder), *glm_figures.redraw(cells, folder)]:
        print(path)


@app.command()
def report(
    output: Annotated[Path | None, Option(help="the folder to write; REPRO_RUNS/report by default")] = None,
) -> None:
    """Write tables, figures, claims, discrepancies and executed notebooks as one static site; print its first page.

    Trains nothing. Notebooks are those in REPRO_RUNS/notebooks. A report that is there already is replaced.

    Example: repro report --output report
    """
    from repro.report.claims import collected, judge, measured_discrepancies  # tables take seconds to import
    from repro.report.site import build

    evidence, runs = collected(), manifest.runs_root()
    checked = judge(evidence), measured_discrepancies(evidence)
    print(build(output or runs / "report", manifest.project_root() / "figures", runs / "notebooks", *checked))


@app.command()
def claims(
    paper: Annotated[str, Option(help="all | taxonomy | CM-ACC | SCE | JCL")] = "all",
) -> None:
    """Print the checkable sentences of the papers with their verdicts, then where the papers contradict themselves.

    A line each, broken on a terminal alone: id, verdict, level of the evidence, place and sentence in our words, in
    brackets what is compared, evidence, with the standard error (s.e.) of differences. Reads figures/ and REPRO_RUNS,
    trains nothing.

    Example: repro claims --paper SCE
    """
    from repro.report.claims import PAPERS, collected, judge, lines, measured_discrepancies  # tables take seconds

    choose("paper", paper, ("all", *PAPERS))
    evidence = collected()
    tables = [judge(evidence), measured_discrepancies(evidence)]
    if paper != "all":
        tables = [table[table["paper"] == paper] for table in tables]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print("\n".join(lines(*tables, width)))


@app.command()
def doctor(
    repair: Annotated[bool, Option("--repair", help="Mend what can be mended without loss.")] = False,
) -> None:
    """Print versions, devices, data and the state of the runs, and what is wrong; ends with status 1 if something is.

    Data that are here are read and checked. Nothing is changed without --repair, which deletes temporary files of
    processes that were killed and sets results aside that cannot be read; it leaves cells alone that are being trained.

    Example: repro doctor --repair
    """
    from repro.doctor import examined

    if examined(print, repair=repair):
        raise typer.Exit(1)


def _check_options(
    name: str, given: Iterable[str], allowed: Iterable[str], others: Callable[[str], list[str]] = lambda option: []
) -> None:
    """Raise ValueError, naming those there are and which `others` have it, unless all options given are there."""
    known = [_option(parameter) for parameter in allowed]
    for parameter in given:
        if _option(parameter) not in known:
            elsewhere = "".join(f"; {other} has it" for other in others(parameter))
            told = f"its options are {', '.join(known)}{elsewhere or closest(_option(parameter), known)}"
            raise ValueError(f"{name} has no option {_option(parameter)}; {told}")


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


def _option(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


def _tables_with(parameter: str) -> list[str]:
    """The tables that have a parameter."""
    from repro.tables import TABLES  # torchvision takes seconds to import

    return [name for name, table in TABLES.items() if parameter in inspect.signature(table.cells).parameters]


def _table(name: str) -> Table:
    from repro.tables import TABLES  # torchvision takes seconds to import

    return TABLES[choose("table", name, TABLES)]
