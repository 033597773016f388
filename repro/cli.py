"""The command line: `repro ...` or `python3 -m repro ...`; `repro --debug ...` shows where an error comes from,
`repro --version` which version this is.

What takes seconds to import (torch, pandas, matplotlib) is imported by the commands that need it: help is quick.
"""

import contextlib
import dataclasses
import importlib.metadata
import os
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from repro import papers
from repro.data import files, manifest
from repro.data.disk import acquire, output_file, output_folder, remove_half_written, write_atomically
from repro.recipe import choose, entry_name
from repro.run.store import Store

if TYPE_CHECKING:
    from repro.experiments import Experiment
    from repro.table import Table

PLAIN = {"no_args_is_help": True, "rich_markup_mode": None}  # rich takes as long to import as all else
HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__, context_settings=HELP, **PLAIN)
data_app = typer.Typer(**PLAIN, help="Data sets: what is declared and what is here.")
results_app = typer.Typer(**PLAIN, help="Finished runs.")
app.add_typer(data_app, name="data")
app.add_typer(results_app, name="results")
NAMES = " | ".join(papers.table_names())
PREPARED = "ntu | kinetics700 | kinetics_sound | audioset | ucf101 | hmdb51 | esc50"
Engine = Literal["auto", "inline", "local", "dask"]
FREE = {"allow_extra_args": True, "ignore_unknown_options": True}  # fields of recipes are options too


def main() -> None:
    """Run the command line; an error a reader can mend is a line and ends with status 2, its traceback with --debug.

    Memory that is not there ends with status 1, as nothing need be wrong with what was given.
    """
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    try:
        if arguments == ["--version"]:
            print(f"repro {importlib.metadata.version('repro')}")
            sys.exit(0)
        options = [argument.partition("=")[0].replace("_", "-") for argument in arguments if argument.startswith("--")]
        for option in options:
            if options.count(option) > 1:
                raise ValueError(f"{option} is there twice; give it once, several values as a comma list")
        app(arguments)
    except SystemExit as end:
        if end.code == 130:  # as typer ends at Ctrl-C
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
    name: Annotated[str, Argument(help=f"{NAMES}, or a saved experiment")] = "",
    dataset: Annotated[str | None, Option(help="A name in `repro data list`; bundled data by default.")] = None,
    preset: Annotated[str | None, Option(help="auto (the default) | paper | quick | smoke")] = None,
    seeds: Annotated[str | None, Option(help="Comma list or range, 0 by default.")] = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    engine: Annotated[Engine, Option(help="this process, processes of this machine, or those of a cluster")] = "auto",
    workers: Annotated[str, Option(help="auto, the number of processes, or the address of dask's scheduler")] = "auto",
    variant: Annotated[str | None, Option(help="where paper and released code disagree, by name")] = None,
    train: Annotated[Literal["missing", "never"], Option(help="never: print what is finished")] = "missing",
    plan: Annotated[bool, Option("--plan", help="train nothing; print what it would cost")] = False,
    every: Annotated[bool, Option("--all", help="print every column")] = False,
    output: Annotated[str | None, Option(help="a CSV file to write every column to, - for standard output")] = None,
    against: Annotated[str | None, Option(help="a row, by its values: CE or random,256; adds differences")] = None,
    asked_for_help: Annotated[bool, Option("-h", "--help", help="Show this; with NAME its fields too.")] = False,
) -> None:
    """Train what is missing of a table or experiment and print it. Started again it continues; started twice, the two
    share it. With --plan it takes a few steps of each recipe instead, and prints what the table would cost here.

    Every field of the recipe is an option, listed by `repro run NAME --help`: --epochs 30 sets it in all rows that use
    it, and several values sweep, --epochs 10,30,150. Options replace what a saved experiment has.

    Image tables also train one run on several devices: torchrun --nproc-per-node 8 -m repro run NAME ...

    Example: repro run taxonomy --dataset ucla --preset quick --objectives random,CE,CE+AD --epochs 10,30
    """
    choices = _choices(context)
    if asked_for_help:
        of_fields = ""
        if name:
            experiment = _asked(name, choices)
            of_fields = "\n\n" + _fields(experiment.declared, [("field", "this command"), *experiment.values.items()])
        print(f"{context.get_help()}{of_fields}")
        return
    of_tables = {"--train never": train == "never", "--against": against, "--all": every, "--output": output}
    if plan and (beside := [option for option, given in of_tables.items() if given]):
        raise ValueError(f"--plan prints costs of training, and no table; leave {', '.join(beside)} out")
    Store().require_usable()
    file = output_file(output) if output is not None else None
    piped = output is not None and file is None

    from repro import experiments
    from repro.papers import sources
    from repro.report.text import in_text, readable, remarks
    from repro.run import device as devices
    from repro.run import engine as engines
    from repro.run import plan as costs

    where = devices.resolve(device)
    with devices.process_group(where):
        asked_for = experiments.chosen(name, choices, train, device)
        if plan:
            runs, study = [*asked_for.asked(device).values()], asked_for.declared.study
            print(costs.plan(runs, study, Store(), where, engines.pool_of(engine, workers, runs, where).workers))
            return
        base = sources.row_named(asked_for, against) if against is not None else None
        rows = experiments.table_of(asked_for, train, device, engine, workers)
        if not devices.first():
            return
        written, text = in_text(rows), readable(rows)
        if every:
            columns = written.to_string(index=False, na_rep="-", float_format="{:.4g}".format)
            text = "\n".join([columns, *remarks(rows)])
        if base and len(rows):
            text += f"\n\n{sources.differences(asked_for, base)}"
        if file:
            write_atomically(file, lambda temporary: written.to_csv(temporary, index=False))
        if piped:
            print(written.to_csv(index=False), end="")
        print(text, file=sys.stderr if piped else sys.stdout)
        if "smoke" in set(rows["preset"]):
            print("preset smoke: steps that show that all runs; the numbers say nothing", file=sys.stderr)


@app.command(context_settings=FREE)
def recipe(
    context: typer.Context,
    name: Annotated[str, Argument(help=f"{NAMES}, or a saved experiment")],
    dataset: Annotated[str | None, Option(help="A name in `repro data list`; one of the paper's by default.")] = None,
    preset: Annotated[str | None, Option(help="auto (the default) | paper | quick | smoke")] = None,
    variant: Annotated[str | None, Option(help="where paper and released code disagree, by name")] = None,
) -> None:
    """Print what a table or experiment trains: every field that a recipe uses, its value and where that comes from.

    It is the one of its recipes that uses most fields; options as for `repro run` choose others.

    Example: repro recipe taxonomy --dataset ucla --preset quick --objectives CE
    """
    experiment = _asked(name, _choices(context))
    table, rows = experiment.declared, []
    for field, value, source in table.described(
        experiment.dataset, experiment.preset, experiment.variant, **experiment.fields
    ):
        rows.append((field, str(value), source if field in table.study.fields else f"{source}, no option"))
    print(_fields(table, rows))


@data_app.command("list")
def data_list() -> None:
    """Print every declared data set, whether it is here, and how to get it.

    Example: repro data list
    """
    for row in files.status():
        print(f"{row['name']:<12} {row['state']:<9} {row['title']}")
        copy = f"{row['copy']} has been taken in; --subset takes it" if row["copy"] else ""
        for line in filter(None, (row["path"], row["next_step"], copy)):
            print(f"{'':<23}{line}")


@data_app.command("download")
def data_download(name: Annotated[str, Argument(help="a data set with automatic access")]) -> None:
    """Fetch a data set into REPRO_DATA and check it.

    Example: repro data download cifar10
    """
    for path in files.download(name):
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
    size: Annotated[int | None, Option(help="of recordings: 256 for paper, 64 for quick, pixels high (128)")] = None,
    subset: Annotated[bool, Option("--subset", help="Accept an incomplete distribution.")] = False,
    skip_bad: Annotated[bool, Option("--skip-bad", help="Leave out bad files; with --subset.")] = False,
    workers: Annotated[int | None, Option(min=1, max=os.cpu_count(), help="processes; by default one a core")] = None,
) -> None:
    """Read a large data set once and keep its arrays in REPRO_RUNS. Killed, it goes on when started again.

    Example: repro data prepare ntu
    """
    choose("dataset", name, PREPARED.split(" | "))
    own, other, given = ("pipeline", "size", size) if name == "ntu" else ("size", "pipeline", pipeline)
    if given is not None:
        raise ValueError(f"{name} has no option --{other}; its options are --{own}")
    if skip_bad and not subset:
        raise ValueError("--skip-bad leaves files out, which --subset allows; give both, or neither")
    Store().require_writable()
    from repro.run.device import cores

    how = {"skip_bad": skip_bad, "workers": workers or cores()}
    if name == "ntu":
        from repro.skeleton import ntu

        lines = ntu.describe(ntu.source(pipeline=pipeline or "authors", subset=subset).prepare(**how))
    else:
        from repro.audiovisual import prepare  # numpy alone at first, decoders where they are used

        clips = prepare.source(name, size=prepare.SIZE if size is None else size, subset=subset)
        lines = prepare.describe(clips, clips.prepare(**how))
    print("\n".join(lines))


@results_app.command("list")
def results_list(
    mine: Annotated[bool, Option("--mine", help="only those in REPRO_RUNS that are new")] = False,
    dataset: Annotated[str | None, Option(help="only those on a data set, parts and copies of it too")] = None,
) -> None:
    """Print every finished run with its main measure: ours, of figures/runs.csv, then yours, new in REPRO_RUNS.

    The measure is the accuracy of the linear probe; of runs that are fine-tuned instead, that on the first target.
    One of yours that "replaces ours" was trained by both: yours is shown, drawn and exported.

    Example: repro results list --mine --dataset ucla
    """
    from repro.experiments import finished
    from repro.report.text import in_columns

    if dataset is not None:
        choose("dataset", dataset, manifest.names())
    runs = finished()
    runs = runs[(runs["whose"] != "ours") | (not mine)]
    runs = runs[runs["dataset"].map(manifest.plain).eq(dataset) | (dataset is None)]
    if runs.empty:
        print(f"no run {'of yours ' * mine}is finished{f' on {dataset}' if dataset else ''}; `repro run` trains some")
        return
    columns = ("id", "study", "dataset", "preset", "version", "whose", "seed", "measure")
    rows = [(*columns, "value", "trained")]
    ours_first = runs.sort_values("whose", key=lambda whose: whose != "ours", kind="stable")
    for run in ours_first.to_dict("records"):
        value = f"{run[run['measure']]:.2f}" if run["measure"] else "-"
        rows.append((*(str(run[name]) for name in columns), value, entry_name(run["named"], run["changes"])))
    print("\n".join(in_columns(rows)))


@results_app.command("export")
def results_export() -> None:
    """Merge the finished runs of REPRO_RUNS into figures/runs.csv, smoke runs left out.

    The file is that of the checkout, or else of the current folder. What you trained again takes the place of what was
    there, unless that is of a newer evaluation. What runs have left beside numbers: `repro figures --committed`.

    Example: repro results export
    """
    from repro.experiments import by_study, of_today, warn_of_other_code
    from repro.run.store import export, finished_runs, with_owners

    path, store = manifest.project_root() / "figures" / "runs.csv", Store()
    with acquire(manifest.project_root() / ".lock", -1):  # two exports at once would each lose what the other adds
        remove_half_written(path.parent)
        finished = of_today(finished_runs(store))
        readable = [id for runs in by_study(finished).values() for id in runs["id"]]
        finished = finished[finished["id"].isin(readable)]
        before, runs = export(finished, path)
        replaced = len(before) - len(before.merge(runs, on=["id", "metrics", "cost"]))
        print(f"{path}: {len(runs)} runs, {len(runs) - len(before)} of them new; left out, of smoke runs: "
              f"{sum(finished['preset'] == 'smoke')}; in place of what was there: {replaced}")
        warn_of_other_code(with_owners(finished, before))


@results_app.command("weights")
def results_weights(
    id: Annotated[str, Argument(help="of a finished run of images or skeletons, see `repro results list`")],
    output: Annotated[str | None, Option(help="the file to write; ID.safetensors by default")] = None,
    half: Annotated[bool, Option("--half", help="float16 instead of float32")] = False,
) -> None:
    """Write the trained encoder of a run as safetensors, its recipe and its input in the metadata, for use elsewhere.

    `repro.load(FILE)` reads it back: encoder(images or recordings) are features.

    Example: repro results weights 0123456789abcdef --output encoder.safetensors
    """
    file = output_file(f"{id}.safetensors" if output is None else output)
    from repro.encoders import export

    if file:
        print(export(id, file, half=half))
        return
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.buffer.write(export(id, Path(folder) / "encoder.safetensors", half=half).read_bytes())


@app.command()
def figures(
    names: Annotated[list[str] | None, Argument(help="experiments and pictures; all by default")] = None,
    output: Annotated[str | None, Option(help="the folder to write; REPRO_RUNS/figures by default")] = None,
    committed: Annotated[bool, Option("--committed", help="write figures/ of the project, tracked files too")] = False,
) -> None:
    """Write the table of every experiment, from REPRO_RUNS and figures/, and what else there are pictures of.

    Of experiments, those that are named are drawn, or that have a title in findings.yaml.

    Trains nothing. A figure that cannot be drawn is named at the end, and others are drawn; then it ends with status 1.

    Example: repro figures taxonomy_ucla --output drawn
    """
    from repro.papers import drawing

    if committed and output is not None:
        raise ValueError(f"--committed writes figures/, not --output {output}; leave one of them out")
    folder = manifest.project_root() / "figures" if committed else manifest.runs_root() / "figures"
    folder = folder if output is None else output_folder(output)
    with acquire(manifest.project_root() / ".lock", -1) if committed else contextlib.nullcontext():  # as an export
        written, failed = drawing.redraw(folder, names or ())
    print(*written, sep="\n", end="\n" * bool(written))
    _end_after({name: f"could not be drawn ({type(error).__name__}: {error})" for name, error in failed.items()})


@app.command()
def report(
    output: Annotated[str | None, Option(help="the folder to write; REPRO_RUNS/report by default")] = None,
    markdown: Annotated[bool, Option("--markdown", help="write RESULTS.md and docs/results_*.md instead")] = False,
) -> None:
    """Execute the notebooks and build the book: README, results, papers, notebooks, all runs; print its first page.

    Takes minutes, trains nothing, and needs the libraries of requirements-dev.txt. A notebook that fails is left out
    and named at the end; then it ends with status 1. A book that is there is replaced when the new one is whole.

    With --markdown the results notebooks alone are executed, and what they show becomes the pages of the project, or of
    --output. A typed number or direction that the outputs of its section do not show stops it.

    Example: repro report --output book
    """
    folder = manifest.project_root() if markdown else manifest.runs_root() / "report"
    folder = folder if output is None else output_folder(output)
    if markdown:
        from repro.report.markdown import write

        print("\n".join(map(str, write(manifest.project_root(), folder))))
        return
    from repro.book import build

    first, failed = build(folder)
    print(first)
    _end_after({f"the notebook {name}": f"could not be executed, and is left out ({failed[name]})" for name in failed})


@app.command()
def claims(
    names: Annotated[list[str] | None, Argument(help="ids such as S15 or T-2; all by default")] = None,
    paper: Annotated[str, Option(help=f"all | {' | '.join(papers.titles().values())}")] = "all",
    verdict: Annotated[str, Option(help="all, or one of those below: those sentences alone")] = "all",
) -> None:
    """Print the checkable sentences of the papers with their verdicts, then where the papers contradict themselves.

    Each has its id, its verdict (holds | fails | self-consistent | contradicts itself | undecided | not run | cannot be
    checked), p where runs decide it (one-sided, corrected), and level of evidence; then its place, the sentence in our
    words, and the differences with their standard error (s.e.) and runs of both sides. Trains nothing.

    Example: repro claims --paper SCE --verdict undecided
    """
    from repro.papers.sources import judged
    from repro.report.claims import table

    for name in names or ():
        choose("id", name, [*papers.claims(), *papers.discrepancies()["id"]])
    claimed, _, discrepancies = judged(paper, verdict=verdict)
    if verdict != "all":
        discrepancies = discrepancies[:0]
    if names:
        claimed, discrepancies = (rows[rows["id"].isin(names)] for rows in (claimed, discrepancies))
    print(table(claimed, discrepancies))


@app.command()
def doctor() -> None:
    """Print what is wrong with folders, locks, data, runs and results, and what to do about it.

    Ends with status 1 if something is wrong. Data that are here are read and checked; nothing is changed.

    Example: repro doctor
    """
    from repro.doctor import examined

    if examined(print):
        raise typer.Exit(1)


def _end_after(failures: Mapping[str, str]) -> None:
    """Name what failed, and say how; the command then ends with status 1."""
    for name, failure in failures.items():
        print(f"repro: {name} {failure}", file=sys.stderr)
    if failures:
        raise typer.Exit(1)


def _choices(context: typer.Context) -> dict[str, str]:
    """What a command is given of the arguments of `repro.run_table`: options that it lists, and any others as they
    stand: "--epochs 30", "--epochs=30", "--redrawn". ValueError if one is no option.
    """
    listed = {name: context.params.get(name) for name in ("dataset", "preset", "seeds", "variant")}
    choices = {name: value for name, value in listed.items() if value is not None}
    rest = list(context.args)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if not option.startswith("--"):
            raise ValueError(f"{option!r} is no option; options begin with --, and a list has commas and no spaces")
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else "true"
        choices[option[2:].replace("-", "_")] = value
    return choices


def _asked(name: str, choices: Mapping[str, str]) -> "Experiment":
    """The experiment of a name with these choices, which may be of data that are not here."""
    from repro.experiments import find

    experiment = dataclasses.replace(find(name).with_choices(choices), data=None)
    experiment.check()
    return experiment


def _fields(table: "Table", rows: Sequence[tuple[str, ...]]) -> str:
    """Rows about fields, then the data sets and methods of a table."""
    from repro.report.text import in_columns

    lines = in_columns(rows)
    for name, values in (("dataset", table.datasets), (table.study.recipe.named_by, table.known_methods)):
        lines.append(f"{name} is one of: {', '.join(values)}")
    return "\n".join(lines)
