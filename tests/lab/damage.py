"""Stores with one thing broken: bytes flipped, pages blanked, files cut, texts changed."""

import random
from collections.abc import Iterator
from pathlib import Path

PAGE = 4096


def damaged(sound: bytes, seed: int) -> bytes:
    """The bytes of a database after one accident, another for each seed."""
    chance = random.Random(seed)
    content = bytearray(sound)
    pages = len(content) // PAGE
    kind = seed % 6
    if kind == 0:  # a byte anywhere
        content[chance.randrange(100, len(content))] ^= 1 << chance.randrange(8)
    elif kind == 1:  # a page of nothing
        place = PAGE * chance.randrange(pages)
        content[place + (100 if place == 0 else 0) : place + PAGE] = bytes(PAGE - (100 if place == 0 else 0))
    elif kind == 2:  # a page of something else
        place = PAGE * chance.randrange(1, pages)
        content[place : place + PAGE] = chance.randbytes(PAGE)
    elif kind == 3:  # the end is missing
        del content[PAGE * chance.randrange(1, pages) + chance.choice([0, 7, 2000]) :]
    elif kind == 4:  # two pages exchanged, as after a lost write
        first, second = (PAGE * chance.randrange(1, pages) for _ in range(2))
        content[first : first + PAGE], content[second : second + PAGE] = (
            content[second : second + PAGE],
            content[first : first + PAGE],
        )
    else:  # a burst
        place = chance.randrange(100, len(content) - 64)
        content[place : place + 64] = chance.randbytes(64)
    return bytes(content)


def accidents(sound: bytes, directory: Path, seeds: range) -> Iterator[tuple[int, Path]]:
    """Files with one accident each."""
    for seed in seeds:
        file = directory / f"damaged-{seed}.db"
        file.write_bytes(damaged(sound, seed))
        yield seed, file
