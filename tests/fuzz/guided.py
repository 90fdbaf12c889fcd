"""A small fuzzer guided by coverage: inputs that reach new lines of genscope are kept and changed further.

Hypothesis knows nothing of coverage, and libFuzzer's binding for Python brings a compiler's runtime, ends its own
process and has no wheel for every platform. What is needed is little: a trace of the lines that an input reaches, and a
pool.

Guarantee: the same seed tries the same inputs. An input that ends in anything but an answer or a refusal fails, and the
message holds its bytes, to be kept in `corpus/`.
"""

import base64
import copy
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import genscope
from genscope.refusal import Refusal

HERE = str(Path(str(genscope.__file__)).parent)
ARITHMETIC = str(Path(HERE) / "bounds")  # long loops over numbers, where a trace only costs time
LONGEST = 20_000  # bytes of an input
NUMBERS = [0, 1, -1, 2, 7, 255, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 10**400]
NUMBERS += [0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf")]
ODD: list[Any] = [*NUMBERS, None, True, False, "", "a", "0", "\0", "\ud800", "é" * 40, "x" * 3000, [], {}, [[]], [0, 0]]
PIECES = [str(number).encode() for number in NUMBERS]
PIECES += [
    b"\0",
    b"\xff",
    b"\n",
    b"\r\n",
    b" ",
    b'"',
    b"'",
    b"\\",
    b"%",
    b"%00",
    b"{}",
    b"[]",
    b"(",
    b")",
    b"~",
    b"=",
    b":",
    b"/",
]


@dataclass(frozen=True)
class Target:
    """What reads inputs: where to begin, words that are likely to matter, and the reader.

    `is_json`: inputs are changed as trees of values, too. The reader returns, or raises a refusal with advice.
    """

    name: str
    seeds: Sequence[bytes]
    read: Callable[[bytes], object]
    words: Sequence[bytes] = ()
    is_json: bool = False
    share: int = 1000  # of a hundred thousand inputs


class Tally(NamedTuple):
    """How many inputs were tried and refused, how many lines they reached, and how many were kept."""

    tried: int
    refused: int
    lines: int
    kept: int


@dataclass
class _Trace:
    """Pairs of lines of genscope that followed one another."""

    found: set[tuple[int, int, int]] = field(default_factory=set)

    def __call__(self, frame: Any, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(HERE) or name.startswith(ARITHMETIC):
            return None
        code, last, found = id(frame.f_code), 0, self.found

        def line(frame: Any, event: str, _: object) -> Any:
            nonlocal last
            found.add((code, last, frame.f_lineno))
            last = frame.f_lineno
            return line

        return line


def check(target: Target, data: bytes) -> bool:
    """Whether the reader takes an input; False if it refuses. Anything else fails."""
    try:
        target.read(data)
    except (Refusal, OSError, UnicodeError) as refusal:
        said = str(refusal)
        if not said or len(said) > 3000 + 8 * len(data):  # a user's own text may be repeated, escaped
            raise AssertionError(f"{target.name} refused with {len(said)} characters: {_told(data)}") from refusal
        return False
    except Exception as error:
        raise AssertionError(f"{target.name} broke with {type(error).__name__}: {_told(data)}") from error
    return True


def fuzz(target: Target, *, inputs: int, seed: int) -> Tally:
    """Try so many inputs."""
    draw = random.Random(seed)
    pool, taken, seen, refused = list(target.seeds), list(target.seeds), set(), 0
    before = sys.gettrace()
    for number in range(inputs):
        # What is near to an input that is taken gets further than what is near to one that is refused.
        first = number < len(target.seeds)
        data = target.seeds[number] if first else _changed(draw, draw.choice([pool, taken, taken]), target)
        trace = _Trace()
        sys.settrace(trace)
        try:
            accepted = check(target, data)
        finally:
            sys.settrace(before)
        refused += not accepted
        if not trace.found <= seen:
            seen |= trace.found
            pool.append(data)
            if accepted:
                taken.append(data)
    return Tally(inputs, refused, len(seen), len(pool))


def _told(data: bytes) -> str:
    coded = base64.b64encode(data).decode()
    return f"{data[:200]!r}; keep it in tests/fuzz/corpus: base64.b64decode({coded!r})"


def _changed(draw: random.Random, pool: Sequence[bytes], target: Target) -> bytes:
    place = max(draw.random(), draw.random())  # what came late reached something new
    data = pool[int(place * len(pool))]
    for _ in range(draw.choice([1, 1, 1, 2, 2, 4, 8])):
        tree = _tree(data) if target.is_json and draw.random() < 0.8 else None
        data = _bytes_changed(draw, data, pool, target.words) if tree is None else _tree_changed(draw, tree, pool)
    return data[:LONGEST]


def _bytes_changed(draw: random.Random, data: bytes, pool: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    start = draw.randint(0, len(data))
    end = min(len(data), start + draw.choice([0, 1, 1, 2, 4, 8, 32]))
    how = draw.randrange(6)
    if how == 0:
        new = bytes(draw.randrange(256) for _ in range(draw.randint(1, 4)))
    elif how == 1 and words:
        new = draw.choice(words)
    elif how == 2:
        new = draw.choice(PIECES)
    elif how == 3:  # a part of another input
        other = draw.choice(pool)
        first = draw.randint(0, len(other))
        new = other[first : first + draw.randint(1, 60)]
    elif how == 4:  # what is there, again
        new = data[start:end] * draw.choice([2, 3, 50])
    else:
        new = b""
    return data[:start] + new + data[end:]


def _tree(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _tree_changed(draw: random.Random, tree: Any, pool: Sequence[bytes]) -> bytes:
    places = list(_places(tree))
    if not places:
        return json.dumps(draw.choice(ODD)).encode()
    holder, key = draw.choice(places)
    how = draw.randrange(6)
    if how == 0:
        del holder[key]
    elif how == 1:  # from elsewhere in this input
        other, name = draw.choice(places)
        holder[key] = copy.deepcopy(other[name])
    elif how == 2:
        holder[key] = [holder[key]] * draw.choice([0, 1, 2, 9])
    elif how == 3 and isinstance(holder, dict):
        other = _tree(draw.choice(pool))
        names = [name for each, name in _places(other) if isinstance(each, dict)]
        holder[draw.choice([*names, "", "é"])] = holder[key]
    elif how == 4 and type(holder[key]) in (int, float):
        holder[key] += draw.choice([-1, 1])
    else:
        holder[key] = draw.choice(ODD)
    return json.dumps(tree).encode()


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every holder with every key below a value."""
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        items = holder.items() if isinstance(holder, dict) else enumerate(holder) if isinstance(holder, list) else ()
        for key, value in items:
            yield holder, key
            waiting.append(value)
