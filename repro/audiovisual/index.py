"""What every file of a data set holds, found out once without decoding it: one line of JSON per file."""

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from repro.audiovisual import media, sources
from repro.data.disk import naming, write_atomically
from repro.run.parallel import run_jobs

CHUNK = 64                    # files that a process looks at before it reports


@dataclass(frozen=True)
class Item:
    """A clip that the lists name, and its file.

    Attributes:
        name: as the lists have it.
        entry: the file.
        seconds: that it should last, NaN if the lists do not say.
    """

    name: str
    entry: sources.Entry
    seconds: float


def scan(items: Sequence[Item], needs: str, path: Path, workers: int) -> dict[str, dict[str, Any]]:
    """The records of all items by name, from the index at `path` as far as it knows them, which is then complete.

    A record has name, place, bytes, and what `media.describe` finds (kind, seconds, video, audio); of a file that
    cannot be used, a reason instead. Such files are looked at again each time; others when their size has changed.

    Args:
        items: sorted by name.
        needs: what they are useless without, "video" or "audio".
        path: of the index. What a killed scan found is beside it, and is used.
        workers: processes.
    """
    partial = path.with_suffix(".partial")
    known = {(record["name"], record["bytes"]): record for each in (path, partial) for record in _lines(each)}
    found = {item.name: record for item in items if (record := known.get((item.name, item.entry.size)))
             and record["reason"] is None}
    unknown = [item for item in items if item.name not in found]
    if not unknown and path.exists() and not partial.exists():
        return found
    jobs = [(unknown[start : start + CHUNK], needs) for start in range(0, len(unknown), CHUNK)]
    with naming(partial), open(partial, "a", encoding="utf-8") as file, tqdm(
        total=len(items), initial=len(found), desc="looking at files", unit="file", file=sys.stderr
    ) as progress:
        file.write("\n")  # after a line that a kill cut
        for records in run_jobs(describe_all, jobs, workers):
            found |= {record["name"]: record for record in records}
            file.writelines(json.dumps(record) + "\n" for record in records)
            file.flush()
            progress.update(len(records))
    text = "".join(json.dumps(found[item.name]) + "\n" for item in items)
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    partial.unlink()
    return found


def describe_all(items: Sequence[Item], needs: str) -> list[dict[str, Any]]:
    """The records of some items."""
    return [_describe(item, needs) for item in items]


def _describe(item: Item, needs: str) -> dict[str, Any]:
    record = {"name": item.name, "place": item.entry.place, "bytes": item.entry.size, "reason": None}
    try:
        with sources.opened(item.entry) as file:
            return record | media.describe(file, needs)
    except media.Unusable as error:
        return record | {"reason": str(error)}
    except Exception as error:
        error.add_note(f"in {item.entry.place}")
        raise


def _lines(path: Path) -> list[dict[str, Any]]:
    """The records in a file but for lines that are damaged; none if there is no file."""
    records = []
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                record = json.loads(line)
                records += [record] if isinstance(record, dict) and {"name", "bytes", "reason"} <= record.keys() else []
    return records
