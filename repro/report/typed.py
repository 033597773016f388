"""Whether sentences that a person typed say what the tables beside them show.

A number belongs to the row that is named last before it, by the row's first cell. It has to stand there, rounded as it
is typed, and neither of its neighbours in the last digit may: so a typing error is seen. Where no row and no claim is
named it may stand in any row, as long as its neighbours stand in none. Numbers of one row are typed in its order, so
that a swap is seen.
"""

import itertools
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from nbformat import NotebookNode

HEADING = re.compile(r"(?m)^(?=##? )")  # where a section begins
SENTENCE = re.compile(r"\n|(?<=[.?!])[*_)]*\s+(?=[*_\[(A-Z])")  # where one ends
NUMBER = re.compile(r"(?<![\w.:/])(?<![A-Za-z]-)[-+\N{MINUS SIGN}]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?"
                    r"(?!\w|[.,]\d|-[A-Z])")  # "17.4-point", not "CIFAR-10", "T-2", "1-NN"
LABEL = re.compile(r"(?:Table|Figure|Equation|Algorithm)s?(?: (?:to |and )?[A-Z]?\.?\d+\w?,?)+")
UNREAD = re.compile(rf"`[^`]*`|\]\([^)]*\)|{LABEL.pattern}")  # code, where links lead, numbers of tables and figures
QUOTED = re.compile("\N{LEFT DOUBLE QUOTATION MARK}[^\N{RIGHT DOUBLE QUOTATION MARK}]*")  # sentences of the papers
VERDICT = re.compile(r"\b(?:not hold|hold|fail|undecided|self-consistent|contradict|not run|cannot be checked)")
UP = ("above|higher|highest|better|best|ahead|beats?|leads?|exceeds?|rises?|raises?|gains?|more|larger|greater|helps?|"
      "improves?|outperforms?")
DOWN = ("below|lower|lowest|worse|worst|behind|loses?|falls?|drops?|collapses?|less|fewer|smaller|lowers?|harms?|"
        "hurts?|costs?")
DIRECTION = re.compile(rf"\b(?:(?P<up>{UP})|{DOWN})\b")
NEGATION = re.compile(r"\b(?:not|no|none|never|neither|nor|cannot)\b")
COMPARED = re.compile(r"([^;|]+) over ([^;|]+?): ([-+]?)[\d.e+-]+(?=, s\.e\.|;| \||$)")  # both sides, sign


class Line(NamedTuple):
    """A line of an output: its name, which is the first cell of a row, its text, and the numbers in it."""

    name: str
    text: str
    numbers: list[Decimal]

    def places(self, sentence: str) -> list[int]:
        """Where a sentence names it: by all parts of "AE, three layers", from the first of them on."""
        found = [occurrences(part, sentence) for part in self.name.split(", ")]
        return found[0] if self.name and all(found) else []


class Section(NamedTuple):
    """What a person typed below a heading, sentence by sentence, and what the cells there show, line by line."""

    heading: str
    sentences: list[str]
    lines: list[Line]


def occurrences(name: str, sentence: str) -> list[int]:
    """Where a name stands in a sentence, as a whole and in any case: AE is not in AE+CD."""
    return [match.start() for match in re.finditer(rf"(?<![\w+-]){re.escape(name)}(?![\w+-])", sentence, re.IGNORECASE)]


def sections(notebook: NotebookNode) -> list[Section]:
    """An executed notebook by its headings of the first and second level."""
    found = [Section("", [], [])]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for part in filter(None, HEADING.split(cell.source)):
                if part.startswith(("# ", "## ")):
                    found.append(Section(part.partition("\n")[0].lstrip("# "), [], []))
                found[-1].sentences.extend(SENTENCE.split(part))
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            found[-1].lines.extend(evidence(data.get("text/markdown", data.get("text/plain", ""))))
    return found


def evidence(output: str) -> Iterator[Line]:
    """The lines of an output, as text or Markdown, but for headings and what the papers say."""
    for row, below in itertools.pairwise([*output.splitlines(), ""]):
        if not row.startswith(("#", ">", "<")) and not below.startswith("| ---"):
            text = UNREAD.sub("", QUOTED.sub("", row))
            first = text.strip("| ").partition(" | ")[0] if text.startswith("|") else ""
            yield Line(first * bool(re.search("[A-Za-z]", first)), text, [*map(value, NUMBER.findall(text))])


def value(number: str) -> Decimal:
    """Of a number as it is written."""
    return Decimal(number.replace(",", "").replace("\N{MINUS SIGN}", "-"))


def unfounded(sentence: str, lines: list[Line]) -> Iterator[str]:
    """What a typed sentence says that these lines do not, a phrase each: numbers, verdicts and directions of claims."""
    text = "" if sentence.startswith("#") else UNREAD.sub("", sentence)
    named: dict[int, list[Line]] = {}
    for line in lines:
        for place in line.places(text):
            named.setdefault(place, []).append(line)
    claims = [line for line in lines if re.fullmatch(r"[A-Z]\d+", line.name) and line.places(text)]
    numbers = [*NUMBER.finditer(text)]
    for number in numbers:
        before = [place for place in named if place < number.start()]
        nearest = max(before) if before else min(named, default=-1)
        if not told_by(number[0], [*named.get(nearest, []), *claims] if named or claims else lines):
            yield (f"{number[0]} is not told, or not from its neighbours, by the outputs (name its row right before "
                   "it, or give one more digit)")
    for first, second in itertools.pairwise(number[0] for number in numbers):
        together = [(places_of(first, line), places_of(second, line)) for line in lines]
        together = [places for places in together if all(places)]
        if first != second and together and not any(min(here) < max(there) for here, there in together):
            yield f"{second} stands before {first} in the outputs (type them in this order)"
    for claim in claims:
        yield from contradicted(text, claim, len(claims) == 1)


def places_of(number: str, line: Line) -> list[int]:
    """Which numbers of a line are this one, rounded as it is written."""
    typed = value(number)
    places = typed.as_tuple().exponent
    return [place for place, known in enumerate(line.numbers)
            if known.as_tuple().exponent <= places and 2 * abs(known - typed) <= Decimal(1).scaleb(places)]


def told_by(number: str, lines: list[Line]) -> bool:
    """Whether a number stands in these lines, rounded as it is written, and neither of its neighbours does."""
    typed = value(number)
    step = Decimal(1).scaleb(typed.as_tuple().exponent)
    here, less, more = (any(places_of(str(near), line) for line in lines)
                        for near in (typed, typed - step, typed + step))
    return here and not less and not more


def contradicted(sentence: str, claim: Line, alone: bool) -> Iterator[str]:
    """Where a sentence that names a claim has another verdict than it, or another direction than its differences.

    A direction is that of the first word that has one, the other way after a negation, and none after
    "whether". It is said of the side of a comparison that the sentence names first; where it names neither, it
    has to be of a claim beside this one.
    """
    said = VERDICT.search(sentence, claim.places(sentence)[0])
    verdict = VERDICT.search(claim.text)
    if said and verdict and said[0] != verdict[0]:
        yield f"{claim.name} is {said[0]!r}, where its verdict is {verdict[0]!r}"
    word, compared = DIRECTION.search(sentence), COMPARED.findall(claim.text)
    if not word or not compared or "whether" in sentence[: word.start()].lower():
        return
    up = (word["up"] is not None) == (len(NEGATION.findall(sentence[: word.start()])) % 2 == 0)
    above: dict[int, list[bool]] = {}  # whether the side named first is, by how many sides are not named
    for first, second, sign in compared:
        places = [min(occurrences(side.partition(",")[0].strip(), sentence), default=len(sentence))
                  for side in (first, second)]
        found = (sign != "-") == (places[0] < places[1])
        above.setdefault(places.count(len(sentence)), []).append(found)
    if min(above) == 2 and alone:
        yield f"{claim.name} compares neither side that {word[0]!r} is said of (name one)"
    elif min(above) < 2 and any(found != up for found in above[min(above)]):
        yield f"{word[0]!r} is not what {claim.name} finds"
