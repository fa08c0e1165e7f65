"""Mutations of inputs: of bytes, of words and of JSON values, all reproducible by a seed."""

from __future__ import annotations

import json
import math
import random
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

# Values at which parsers fail: limits of integers, numbers that are not finite, brackets, paths.
TOKENS = (
    b"-1", b"0", b"1e400", b"NaN", b"nan", b"Infinity", b"9" * 25, b"9" * 5000, b"null", b"true", b"[]",
    b"{}", b"[" * 100, b'{"a":' * 100, b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"../", b"/dev/zero",
    b"\r\n", b",", b'"', b"=", b"\\ud800", "²٣".encode(), b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x80", b"a." * 100, b"'''", b"1" * 200,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**80), 10**400, 0.5, -0.0, 1e-320, 1e308, math.nan,
    math.inf, "", "x", "../x", "\0", "\ud800", "1", "a" * 3000, [], [[]], [0], {}, {"": {}},
)  # fmt: skip
_WORD = re.compile(rb"[^\s,;:=\"'{}\[\]]+")


def mutations(seeds: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """Yield an endless, reproducible sequence of changed inputs."""
    rng = random.Random(seed)
    while True:
        data = rng.choice(seeds)
        for _ in range(rng.choice((1, 1, 2, 4, 8))):
            data = rng.choice((change_bytes, change_word, change_json))(data, rng, seeds)
        yield data


def change_bytes(data: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Flip, replace, remove, repeat or insert some bytes."""
    out = bytearray(data)
    start = rng.randrange(len(out) + 1)
    stop = min(len(out), start + rng.choice((0, 1, 1, 4, 16, 64)))
    kind = rng.randrange(6)
    if kind == 0 and out:
        out[min(start, len(out) - 1)] ^= 1 << rng.randrange(8)
    elif kind == 1:
        out[start:stop] = rng.choice(TOKENS)
    elif kind == 2:
        del out[start:stop]
    elif kind == 3:
        out[start:start] = out[start:stop] * rng.choice((1, 2, 50))
    elif kind == 4:
        other = rng.choice(seeds)
        place = rng.randrange(len(other) + 1)
        out[start:stop] = other[place : place + rng.choice((4, 32, 256))]
    else:
        del out[start:]
    return bytes(out)


def change_word(data: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Replace one word by a token or by a word of another input: the syntax stays valid more often."""
    words = list(_WORD.finditer(data))
    if not words:
        return change_bytes(data, rng, seeds)
    place = rng.choice(words)
    others = TOKENS if rng.random() < 0.5 else _WORD.findall(rng.choice(seeds)) or TOKENS
    return data[: place.start()] + rng.choice(others) + data[place.end() :]


def change_json(data: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Replace, remove or copy one value of the JSON object that the input contains."""
    start = data.find(b"{")
    try:
        root = json.loads(data[start:]) if start >= 0 else None
    except (ValueError, RecursionError):
        root = None
    parents = list(_parents(root))
    if not parents:
        return change_word(data, rng, seeds)
    parent = rng.choice(parents)
    keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
    kind = rng.randrange(4)
    key = rng.choice(keys)
    if kind == 0:
        del parent[key]
    elif kind == 1:
        parent[key] = rng.choice(parents)
    else:
        parent[key] = rng.choice(VALUES)
    try:
        return data[:start] + json.dumps(root).encode()
    except (ValueError, RecursionError):  # the value contains itself
        return change_word(data, rng, seeds)


def _parents(value: Any) -> Iterator[Any]:
    """Yield every object and list that has members."""
    if isinstance(value, dict | list) and value:
        yield value
        for member in value.values() if isinstance(value, dict) else value[:50]:
            yield from _parents(member)


def until(deadline_s: float, inputs: Iterator[bytes]) -> Iterator[bytes]:
    """Yield inputs until a time of the monotonic clock."""
    while time.monotonic() < deadline_s:
        yield next(inputs)
