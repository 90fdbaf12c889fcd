"""Numbers and facts in words, for tables and captions.

Departures: Three significant digits; the store keeps all.
Guarantee: exact up to rounding; what is not a number says so.
"""

import math
import re
from collections.abc import Mapping
from typing import Any


def number(value: Any) -> str:
    """A scalar in at most three significant digits, with commas between thousands.

    >>> number(1 - 2e-9), number(1.0)
    ('1 − 2·10⁻⁹', '1')
    >>> number(0.012345), number(70.4), number(3), number(float("nan")), number(True), number(None)
    ('0.0123', '70.4', '3', 'not a number', 'yes', 'unknown')
    """
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}".replace("-", "−") if abs(value) < 1e7 else power(value)
    if value != 0 and abs(value) < 1e-3:
        return power(value)
    if 0 < abs(value - 1) < 5e-4:  # what is not 1 is not written as 1
        return f"1 {'+' if value > 1 else '−'} {power(abs(value - 1))}"
    return f"{value:.3g}".replace("-", "−")


def rough(value: float) -> str:
    """A number as a heading has it: whole ones as they are, others in two significant digits.

    >>> rough(50.0), rough(2.567), rough(44.31), rough(1e8), rough(12345.6)
    ('50', '2.6', '44', '10⁸', '12,000')
    """
    if 0 < abs(value - 1) < 5e-3:
        return number(value)
    if math.isfinite(value) and not float(value).is_integer():
        value = float(f"{value:.2g}")
    return number(int(value) if math.isfinite(value) and float(value).is_integer() else value).removeprefix("1·")


def power(value: float) -> str:
    """A number in powers of ten.

    >>> power(-1.5e-7), power(1e24)
    ('−1.5·10⁻⁷', '1·10²⁴')
    """
    digits, _, exponent = f"{value:.2e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits.rstrip('0').rstrip('.')}·10{raised}".replace("-", "−")


def measured(value: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """A number and its interval, one of whose sides may be open, both as fine as the interval is wide.

    >>> measured(99.43, 87.31, 113.2), measured(0.5, 0.4871, 0.5129), measured(3.14159, None, None)
    (('99', '[87, 113]'), ('0.500', '[0.487, 0.513]'), ('3.14', 'unknown'))
    >>> measured(None, 3.0, None), measured(None, None, 4.0)
    (('none', 'at least 3'), ('none', 'at most 4'))
    """
    if low is not None and high is not None and 0 < high - low < math.inf and max(abs(low), abs(high)) < 1e7:
        digits = max(0, 1 - math.floor(math.log10(high - low)))
        shown, least, most = (
            f"{each:,.{digits}f}".replace("-", "−") if each is not None else "none" for each in (value, low, high)
        )
        return shown, f"[{least}, {most}]"
    shown = "none" if value is None else number(value)
    if low is None and high is None:
        return shown, "unknown"
    if low is None or high is None:
        return shown, f"at least {number(low)}" if high is None else f"at most {number(high)}"
    return shown, f"[{number(low)}, {number(high)}]"


def value(thing: Any) -> str:
    """A stored value of any shape in one line.

    >>> value([1, 2.5]), value({"low": 1, "high": 2}), value("as it is")
    ('[1, 2.5]', 'low 1, high 2', 'as it is')
    >>> value([1, None]), value([None, None])  # an interval with an open end, and none at all
    ('[1, unknown]', 'unknown')
    """
    if isinstance(thing, Mapping):
        return ", ".join(f"{name} {value(part)}" for name, part in thing.items())
    if isinstance(thing, list | tuple):
        if thing and all(part is None for part in thing):
            return value(None)
        return f"[{', '.join(value(part) for part in thing)}]"
    return number(thing) if isinstance(thing, bool | int | float | None) else str(thing)


def duration(seconds: float) -> str:
    """A time span in its two largest units.

    >>> duration(0.25), duration(75), duration(840), duration(7300)
    ('0.25 s', '1 min 15 s', '14 min', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min")] if hours else [(minutes, "min"), (rest, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def natural(text: str) -> list[tuple[int, int | str]]:
    """A key that sorts numbers inside texts by value.

    >>> sorted(["A10", "A2", "A1"], key=natural)
    ['A1', 'A2', 'A10']
    """
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"([0-9]+)", text) if part]
