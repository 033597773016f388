"""What damage and malice make of sound input: bytes, words, values, archives. A `random.Random` decides all of it."""

import copy
import functools
import io
import json
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

WORDS = (  # in the place of a word of a text
    "nan", "inf", "-inf", "1e999", "1e300", "3e38", "-1", "0", "1", "2", "1.5", "", "1_0", "0x10", "9" * 30,
    "9" * 5000, "null", "true", "None", "x", "²", "٣", "é\u0000", "[" * 100_000, "../../etc/passwd", "=1+1", '"',
    "'", ",", "[", "{}",
)
VALUES = (  # in the place of a value of JSON, YAML or a parameter
    float("nan"), float("inf"), float("-inf"), 1e300, 3e38, 10**400, 2**63, -1, 0, 1, 1.5, None, True, False, "", "nan",
    "1", "x", "²", "../x", [], [1], [[1, 2], [3]], {}, {"x": 1},
)
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
METHODS = (8, 12, 14, 93, 97)  # deflate, bzip2, lzma, zstandard and one that nobody has
LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"
NAMES = ("../outside.txt", "/etc/outside.txt", "a/../../outside.txt", "..\\outside.txt", "C:\\outside.txt", ".hidden",
         "__MACOSX/x", "a//b", "", "con", "x" * 300, "é.txt", "a\nb.txt")
BOMB = bytes(2**23)            # packed, 8 kB
HUGE = 2**31


def of_bytes(contents: bytes, draw: Random) -> bytes:
    """One to three edits of bytes."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        contents = draw.choice(_BYTE_EDITS)(bytearray(contents), draw)
    return bytes(contents)


def of_text(contents: bytes, draw: Random) -> bytes:
    """One to three edits of words, lines or bytes of a text; its separators stay."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        contents = draw.choice(_TEXT_EDITS)(contents, draw)
    return contents


def of_value(tree: Any, draw: Random) -> Any:
    """A copy of nested lists and mappings with another value, a missing or a doubled one, or another name somewhere."""
    tree = {"": copy.deepcopy(tree)}
    for _ in range(draw.choice((1, 1, 2))):
        holder, place = draw.choice(list(_places(tree)))
        edit = draw.randrange(6)
        if edit == 0 and holder is not tree:
            del holder[place]
        elif edit == 1 and isinstance(holder, list):
            holder.insert(place, copy.deepcopy(holder[place]))
        elif edit == 1 and holder is not tree:
            holder[f"{place}s"] = holder.pop(place)
        elif edit == 2:
            holder[place] = f"{holder[place]}"
        else:
            holder[place] = copy.deepcopy(draw.choice(VALUES))
    return tree[""]


def of_json(contents: bytes, draw: Random) -> bytes:
    """Other values, another text or other bytes of a JSON file."""
    if draw.random() < 0.5:
        return json.dumps(of_value(json.loads(contents), draw)).encode()
    return draw.choice((of_text, of_bytes))(contents, draw)


def of_archive(files: Mapping[str, bytes], draw: Random) -> bytes:
    """A zip of some files, damaged or built with intent."""
    members = list(files.items())
    if draw.random() < 0.03:
        return bomb(draw.choice(members)[0], draw.choice((1000, HUGE)))
    edit = draw.choice(MEMBER_EDITS)
    packed = zipped(edit(members, draw) if edit else members, draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    if edit is None:
        packed = draw.choice((of_bytes, _of_header))(packed, draw)
    return packed


def zipped(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of members, of which two may have the same name."""
    target = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w", method) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, contents in members:
            info = zipfile.ZipInfo()
            info.filename, info.compress_type = name, method  # given to ZipInfo, the name would be tidied up
            archive.writestr(info, contents)
    return target.getvalue()


@functools.cache
def bomb(name: str, announced: int) -> bytes:
    """A zip whose only member unpacks to 2 GiB, which is what it announces, or not."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(2**24)) + packer.flush(zlib.Z_FULL_FLUSH)  # which may be repeated
    found = bytearray(zipped([(name, block * 128 + packer.flush())], zipfile.ZIP_STORED))
    for start, method, size in ((found.index(LOCAL), 8, 22), (found.rindex(CENTRAL), 10, 24)):
        struct.pack_into("<H", found, start + method, zipfile.ZIP_DEFLATED)
        struct.pack_into("<I", found, start + size, announced)
    return bytes(found)


def _places(tree: Any) -> Any:
    """(holder, place) of every value in nested lists and mappings; of long lists the first and the last few."""
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
    for key in keys if len(keys) < 20 else keys[:3] + keys[-2:]:
        yield tree, key
        if isinstance(tree[key], (dict, list)):
            yield from _places(tree[key])


def _flip(contents: bytearray, draw: Random) -> bytes:
    for _ in range(draw.choice((1, 1, 2, 8, 64))):
        if contents:
            contents[draw.randrange(len(contents))] ^= 1 << draw.randrange(8)
    return bytes(contents)


def _replaced(by: Callable[[bytearray, Random], bytes]) -> Callable[[bytearray, Random], bytes]:
    """Another part in the place of one, short more often than long."""
    def edit(contents: bytearray, draw: Random) -> bytes:
        start = draw.randrange(len(contents) + 1)
        end = min(len(contents), start + int(2 ** draw.uniform(0, 1 + len(contents).bit_length())))
        return bytes(contents[:start] + by(contents[start:end], draw) + contents[end:])

    return edit


def _number(contents: bytearray, draw: Random) -> bytes:
    """An extreme whole number of 1, 2, 4 or 8 bytes in the first kilobyte, where headers are, or anywhere."""
    size, place = draw.choice((1, 2, 4, 8)), draw.randrange(min(len(contents), draw.choice((1024, 2**40))) + 1)
    number = (draw.choice(NUMBERS) & (2 ** (8 * size) - 1)).to_bytes(size, draw.choice(("little", "big")))
    return bytes(contents[:place]) + number + bytes(contents[place + size :])


_BYTE_EDITS: tuple[Callable[[bytearray, Random], bytes], ...] = (
    _flip, _flip, _flip,
    lambda contents, draw: bytes(contents[: draw.randrange(len(contents) + 1)]),
    _replaced(lambda part, draw: b""),
    _replaced(lambda part, draw: part + part),
    _replaced(lambda part, draw: bytes(len(part))),
    _replaced(lambda part, draw: draw.randbytes(len(part))),
    _number, _number,
    lambda contents, draw: bytes(contents) + draw.choice((bytes(contents), b"\0" * 100, draw.randbytes(100))),
)


def _word(contents: bytes, draw: Random) -> bytes:
    """Another word, or a number next to the one that is there."""
    words = list(re.finditer(rb"[^ \t\r\n,;:\[\]{}\"']+", contents))
    if not words:
        return contents
    found = draw.choice(words[:40] if draw.random() < 0.3 else words)
    if found[0].isdigit() and len(found[0]) < 20 and draw.random() < 0.3:
        other = b"%d" % (int(found[0]) + draw.choice((-1, 1)))
    else:
        other = draw.choice(WORDS).encode()
    return contents[: found.start()] + other + contents[found.end() :]


def _line(contents: bytes, draw: Random) -> bytes:
    """A line deleted, doubled, exchanged with another one, or moved to the end."""
    lines = contents.splitlines(keepends=True)
    if not lines:
        return contents
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(4):
        case 0:
            del lines[one]
        case 1:
            lines.insert(one, lines[one])
        case 2:
            lines[one], lines[other] = lines[other], lines[one]
        case _:
            lines.append(lines.pop(one))
    return b"".join(lines)


_TEXT_EDITS = (_word, _word, _word, _word, _line, _line, of_bytes)


Members = list[tuple[str, bytes]]


def _renamed(members: Members, draw: Random) -> Members:
    place = draw.randrange(len(members))
    return [(draw.choice(NAMES) if number == place else name, data) for number, (name, data) in enumerate(members)]


def _doubled(members: Members, draw: Random) -> Members:
    name, data = draw.choice(members)
    return [*members, (name, draw.choice((data, data[:-1])))]


def _bombed(members: Members, draw: Random) -> Members:
    """A member that unpacks to a thousand times its size, alone or beside the others."""
    bomb = (draw.choice(members)[0] + draw.choice(("", "2")), BOMB)
    return [bomb] if draw.random() < 0.5 else [*members, bomb]


MEMBER_EDITS: tuple[Callable[[Members, Random], Members] | None, ...] = (
    None, None, None, None, None,
    lambda members, draw: [*members, (draw.choice(NAMES), draw.choice(members)[1])],  # a name that leads elsewhere
    _renamed,
    lambda members, draw: [member for member in members if draw.random() < 0.5],
    _doubled,
    _bombed,
    lambda members, draw: [*members, ("inner.zip", zipped(members)), ("empty/", b"")],
)
HEADERS = {  # place and length of fields
    LOCAL: {"flags": (6, 2), "method": (8, 2), "crc": (14, 4), "packed": (18, 4), "size": (22, 4), "name": (26, 2),
            "extra": (28, 2)},
    CENTRAL: {"flags": (8, 2), "method": (10, 2), "crc": (16, 4), "packed": (20, 4), "size": (24, 4), "name": (28, 2),
              "extra": (30, 2), "comment": (32, 2), "place": (42, 4)},
}


def _of_header(contents: bytes, draw: Random) -> bytes:
    """A field of a header: method, flags, checksum, sizes, lengths of names, place; in one header or in both."""
    changed = bytearray(contents)
    headers = [found.start() for found in re.finditer(b"(?=%b|%b)" % (LOCAL, CENTRAL), contents)]
    field = draw.choice(list(HEADERS[CENTRAL]))
    number = draw.choice(METHODS) if field == "method" else draw.choice(NUMBERS)
    for place in headers if draw.random() < 0.5 else draw.sample(headers, 1):
        offset, size = HEADERS[bytes(changed[place : place + 4])].get(field, (0, 0))
        changed[place + offset : place + offset + size] = (number & (2 ** (8 * size) - 1)).to_bytes(size, "little")
    return bytes(changed)
