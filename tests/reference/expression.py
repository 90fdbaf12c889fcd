"""Expressions as nested tuples: their value at one input, bit by bit, and their text with the fewest parentheses."""

BINDING = {"|": 1, "^": 2, "&": 3}


def value(tree: tuple, bits: list[int]) -> int:
    kind, *rest = tree
    if kind == "x":
        return bits[rest[0]]
    if kind == "constant":
        return rest[0]
    if kind == "~":
        return 1 - value(rest[0], bits)
    if kind in BINDING:
        left, right = value(rest[0], bits), value(rest[1], bits)
        return {"&": min(left, right), "|": max(left, right), "^": int(left != right)}[kind]
    number, arguments = rest
    values = [value(argument, bits) for argument in arguments]
    if kind == "table":
        return int(bin(number)[2:].zfill(2 ** len(values))[-1 - int("".join(map(str, reversed(values))), 2)])
    ones = values.count(1)
    return int(
        {
            "maj": ones > len(values) - ones,
            "thr": number is not None and ones >= number,
            "parity": ones in range(1, len(values) + 1, 2),
            "and": 0 not in values,
            "or": 1 in values,
        }[kind]
    )


def text(tree: tuple, space: str = "") -> str:
    """Left operands of equal binding go without parentheses, right ones need them."""
    kind, *rest = tree
    if kind == "x":
        return f"x{rest[0]}"
    if kind == "constant":
        return str(rest[0])
    if kind == "~":
        return f"~{space}{_group(rest[0], 4, space)}"
    if kind in BINDING:
        binding = BINDING[kind]
        return f"{_group(rest[0], binding, space)}{space}{kind}{space}{_group(rest[1], binding + 1, space)}"
    number, arguments = rest
    head = "" if number is None else f"{hex(number) if kind == 'table' else number}{space};{space}"
    return f"{kind}{space}({head}{f'{space},{space}'.join(text(argument, space) for argument in arguments)})"


def _group(tree: tuple, binding: int, space: str) -> str:
    inner = text(tree, space)
    return inner if BINDING.get(tree[0], 4) >= binding else f"({space}{inner}{space})"
