"""What is read from CSV files of ours: lines with a value for each column."""

import csv
from collections.abc import Iterable, Iterator


def whole_lines(text: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV file, its header first, each with its number; of an empty file, an empty header.

    Args:
        text: of the file, opened with `newline=""`.

    Raises:
        ValueError: if a line has more or fewer values than the header, or a quotation does not end.
    """
    reader = csv.reader(text, strict=True)
    try:
        header = next(reader, [])
        yield reader.line_num, header
        for row in reader:
            if len(row) != len(header):
                raise ValueError(f"line {reader.line_num}: {len(row)} values, expected {len(header)}")
            yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(f"{error}") from error
