"""Ways to spoil a file: by bytes, by the values of its JSON, by what its headers claim."""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from copy import deepcopy
from typing import Any

NUMBERS = (0, 1, -1, 127, 255, 2**15, 2**31 - 1, 2**32 - 1, 10**9, 10**15, 2**63 - 1)
VALUES: tuple[Any, ...] = (
    *NUMBERS,
    *(None, True, False, 0.5, -0.0, 1e308, -1e-300, "", "x", "nan", "auto", "float16"),
    *("<script>alert(1)</script>", "../../../etc/passwd", "/dev/zero", "x" * 5000, "\ud83e"),
    *([], {}, [[]], [1, 2, 3], {"a": 1}, [None] * 1000, ["x", "y"]),
)
TEXTS = (
    *("NaN", "Infinity", "-Infinity", "1e999", "1" * 5_000, "9" * 1_000_000, "00"),
    *("[" * 100_000, '{"a":' * 100_000, "\x00", "'", '"', "\\ud800", "{}", "[]", "null"),
)
CELLS = (
    *("nan", "inf", "-inf", "1e999", "1_000", "0x10", "9" * 5_000, "", "?", '"', "a,b", "=1+1"),
    *("9999-12-31T23:59:59+14:00", "0001-01-01T00:00:00-14:00", "2024-02-30", "١٢", "\x00", "é"),
    *("<script>", "-", "1e-400", "T", "1,5", "'", "\r", "\ufeff", "NaT"),
)
WORDS_OF_ZARR = (
    *("zstd", "blosc", "gzip", "zlib", "bz2", "lzma", "lz4", "shuffle", "delta", "pickle", "json2"),
    *("bytes", "transpose", "crc32c", "sharding_indexed", "vlen-utf8", "numcodecs.bz2", "astype"),
    *("<f8", "<U9", "|O", "|V8", "<M8[D]", "|b1", ">i8", "float64", "int8", "bool", "complex64"),
    *("string", "r64", "regular", "default", "v2", "little", "big", "end", "start", "C", "F"),
    *("array", "group", ".", "/"),
)


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """A few of: bits flipped, pieces cut, doubled, moved or zeroed, numbers written over."""
    made = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        rng.choice(_OF_BYTES)(made, rng)
    return bytes(made)


def _flip(made: bytearray, rng: random.Random) -> None:
    if made:
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)


def _cut(made: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(made) + 1)
    del made[at : rng.choice((at + rng.randrange(1, 64), len(made)))]


def _double(made: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(made) + 1)
    piece = made[at : at + rng.randrange(1, 256)]
    to = rng.randrange(len(made) + 1)
    made[to:to] = piece


def _zero(made: bytearray, rng: random.Random) -> None:
    at, n = rng.randrange(len(made) + 1), rng.randrange(1, 32)
    made[at : at + n] = bytes(len(made[at : at + n]))


def _number(made: bytearray, rng: random.Random) -> None:
    """A number that a length or an offset must not be, where one may be."""
    n = rng.choice((1, 2, 4, 8))
    value = rng.choice(NUMBERS) % 2 ** (8 * n)
    at = rng.randrange(len(made) + 1)
    made[at : at + n] = value.to_bytes(n, rng.choice(("little", "big")))


_OF_BYTES = (_flip, _cut, _double, _zero, _number)


def mutate_tail(content: bytes, rng: random.Random) -> bytes:
    """The same in the last part, where Parquet and zip files keep what they say of themselves."""
    at = max(0, len(content) - rng.choice((64, 512, 4096)))
    return content[:at] + mutate_bytes(content[at:], rng)


def mutate_json(content: bytes, rng: random.Random) -> bytes:
    """A value replaced, taken away or doubled; or the text itself spoiled."""
    if rng.random() < 0.15:
        return mutate_bytes(content, rng)
    document = json.loads(content)
    spoil_values(document, rng)
    text = json.dumps(document)
    if rng.random() < 0.15:
        numbers = list(re.finditer(r"-?\d+(\.\d+)?|null|true", text))
        if numbers:
            place = rng.choice(numbers)
            text = text[: place.start()] + rng.choice(TEXTS) + text[place.end() :]
    return text.encode("utf-8", "surrogatepass")


def spoil_values(document: Any, rng: random.Random) -> None:
    """Spoil one to three values anywhere in a document."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = _places(document)
        if not places:
            return
        holder, key = rng.choice(places)
        kind = rng.random()
        if kind < 0.15:
            del holder[key]
        elif kind < 0.25 and isinstance(holder, dict):
            holder[f"{key}x"] = deepcopy(holder[key])
        elif kind < 0.35 and isinstance(holder[key], list):
            holder[key] = deepcopy(holder[key]) + holder[key]
        else:
            holder[key] = deepcopy(rng.choice(VALUES))  # which is spoiled in its turn, perhaps


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a document, as what holds it and its key; of long lists, the first ones."""
    if isinstance(value, dict):
        keys: list[Any] = list(value)
    elif isinstance(value, list):
        keys = list(range(min(len(value), 5)))
    else:
        return []
    return [(value, key) for key in keys] + [p for key in keys for p in _places(value[key])]


def mutate_text(content: bytes, rng: random.Random) -> bytes:
    """Cells of a text table replaced, moved or doubled; or bytes."""
    if rng.random() < 0.4:
        return mutate_bytes(content, rng)
    lines = content.decode().split("\n")
    for _ in range(rng.choice((1, 2, 8))):
        i = rng.randrange(len(lines))
        cells = lines[i].split(",")
        cells[rng.randrange(len(cells))] = rng.choice(CELLS)
        lines[i] = rng.choice((",", ",", ",", ";", "\t")).join(cells)
    return "\n".join(lines).encode()


def mutate_npy(content: bytes, rng: random.Random) -> bytes:
    """A header that claims another shape or type; or bytes."""
    if rng.random() < 0.5:
        return mutate_bytes(content, rng)
    size = int.from_bytes(content[8:10], "little")
    header = content[10 : 10 + size].decode("latin1")
    kinds = ("'<U9'", "'|O'", "'<c16'", "'<M8[D]'", "'|V8'", "'<i8'", "'<U0'", "'|b1'")
    change = rng.choice(("shape", "type", "order"))
    if change == "shape":
        shape = tuple(rng.choice((*NUMBERS, 3, 60)) for _ in range(rng.choice((0, 1, 2, 3))))
        header = re.sub(r"\([^)]*\)", repr(shape).replace("\\", ""), header)
    elif change == "type":
        header = re.sub(r"'descr': '[^']*'", f"'descr': {rng.choice(kinds)}", header)
    else:
        header = header.replace("False", "True")
    text = header.encode("latin1")
    return content[:8] + len(text).to_bytes(2, "little") + text + content[10 + size :]


def mutate_npz(content: bytes, rng: random.Random) -> bytes:
    """A member spoiled, renamed or blown up, in a sound archive; or the archive's bytes."""
    if rng.random() < 0.4:
        return rng.choice((mutate_bytes, mutate_tail))(content, rng)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            data = old.read(name)
            if name == chosen:
                kind = rng.random()
                if kind < 0.2:
                    name = rng.choice(("../../x.npy", "/x.npy", "x", "x" * 5000, ".npy"))
                elif kind < 0.25:
                    data += bytes(20_000_000)
                else:
                    data = mutate_npy(data, rng)
            new.writestr(name, data, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return made.getvalue()


def mutate_line(content: bytes, rng: random.Random) -> bytes:
    """One of the lines spoiled as JSON; at times it loses its end."""
    lines = content.splitlines(keepends=True)
    i = rng.randrange(len(lines))
    lines[i] = mutate_json(lines[i], rng) + b"\n" * (rng.random() < 0.8)
    return b"".join(lines)


def mutate_zarr(content: bytes, rng: random.Random) -> bytes:
    """Codecs, types and shapes that other arrays have, or none should; or values and bytes."""
    if rng.random() < 0.5:
        return mutate_json(content, rng)
    text = content.decode()
    if rng.random() < 0.6:
        shape = [rng.choice((*NUMBERS, 3, 30, 60)) for _ in range(rng.choice((1, 2, 2, 2, 3)))]
        places = list(re.finditer(r"\[[\d,\s]+\]", text))
        made = json.dumps(shape)
    else:
        places = list(re.finditer(rf'"({"|".join(WORDS_OF_ZARR)})"', text))
        made = json.dumps(rng.choice(WORDS_OF_ZARR))
    place = rng.choice(places)
    return (text[: place.start()] + made + text[place.end() :]).encode()


def mutate_safetensors(content: bytes, rng: random.Random) -> bytes:
    """A header that claims other shapes, types and places, its length put right; or bytes."""
    if rng.random() < 0.4:
        return mutate_bytes(content, rng)
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    inner = header.get("__metadata__", {})
    if "piefs" in inner and rng.random() < 0.6:
        inner["piefs"] = mutate_json(inner["piefs"].encode(), rng).decode("utf-8", "replace")
    else:
        spoil_values(header, rng)
    text = json.dumps(header).encode("utf-8", "surrogatepass")
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def mutate(name: str, content: bytes, rng: random.Random) -> bytes:
    """A file spoiled as its kind suggests."""
    suffix = name.rsplit(".", 1)[-1]
    if suffix in ("parquet", "arrow"):
        return rng.choice((mutate_bytes, mutate_tail))(content, rng)
    if name.endswith(("zarr.json", ".zarray")):
        return mutate_zarr(content, rng)
    known = {
        "json": mutate_json,
        "jsonl": mutate_line,
        "csv": mutate_text,
        "npy": mutate_npy,
        "npz": mutate_npz,
        "safetensors": mutate_safetensors,
    }
    return known.get(suffix, mutate_bytes)(content, rng)
