"""How do the capacity bounds grow with the context length? Covering numbers for T = 10³ to 10⁹.

Source: edelman2022, Corollary 4.5, the sum of heads in Section 4, and Theorem 4.7.
Departures: explicit forms beside the paper's orders.
Guarantee: exact arithmetic, up to rounding; nothing is random.
"""

import math
from typing import Any

from jaxtyping import Array, Key

from genscope import bounds
from genscope.lab import Group, Line, Mean, Study, grid, within
from genscope.refusal import Refusal

SAMPLES = 100
HEAD = {
    "value_21": 2.0,
    "value_spectral": 1.0,
    "query_key_21": 3.0,
    "input_norm": 1.0,
    "context_norm": 1.0,
    "epsilon": 0.5,
    "width": 64,
    "dimension": 64,
}
DEEP = {"query_key_spectral": 1.0, "output_21": 2.0, "output_spectral": 1.0, "readout_norm": 1.0, "layers": 2}
BOUNDS = {
    "head": (bounds.head, HEAD),
    "heads": (bounds.heads, HEAD | {"heads": 8}),
    "deep": (bounds.deep, HEAD | DEEP | {"readout_points": SAMPLES}),
}
STEP = 10  # to the next length


def trial(key: Key[Array, ""], *, bound: str, form: str, context_length: int) -> dict[str, Any]:
    """The log covering number at m = 100 samples, and its slope in log T from T to 10 T."""
    del key  # nothing is random

    def nats(length: int) -> float:
        function, norms = BOUNDS[bound]
        norms = {name: value for name, value in norms.items() if form == "explicit" or name != "readout_points"}
        return function(**norms, points=SAMPLES * length, form=form).value

    here = nats(context_length)
    return {"nats": here, "slope": (nats(STEP * context_length) - here) / math.log(STEP)}


def _check(point) -> None:
    within(context_length=(1, None))(point)
    for axis, known in (("bound", tuple(BOUNDS)), ("form", ("order", "explicit"))):
        if axis in point and point[axis] not in known:
            raise Refusal(f"{axis} must be one of {', '.join(known)}. Choose one of them.")


_LABELS = {
    "context_length": "context length T",
    "nats": "log covering number (nats)",
    "head": "one head",
    "heads": "eight heads",
    "deep": "two layers",
}


def _panel(form: str, about: str) -> Line:
    return Line(
        title=f"{form.capitalize()} forms ({about})",
        answer=(
            "From T = {from head} to T = {to head}, the bound for one head grows from {first head} to {last head} nats"
        ),
        labels=_LABELS,
        where={"form": form},
        x="context_length",
        y=Mean("nats"),
        by="bound",
        log_x=True,
        log_y=True,
    )


STUDY = Study(
    name="edelman2022-capacity",
    title="How do the capacity bounds grow with the context length?",
    source="edelman2022, Corollary 4.5 and Theorem 4.7",
    trial=trial,
    trial_cost=0.02,
    points=grid(bound=list(BOUNDS), form=["order", "explicit"], context_length=[10**power for power in range(3, 10)]),
    figures=(
        Group(
            title="Covering numbers against the context length",
            caption=(
                "Log covering number at accuracy ½ of 100 samples, both axes logarithmic: a power of T would be a "
                "rising straight line; growth like log T flattens."
            ),
            panels=(_panel("explicit", "every constant proved"), _panel("order", "constant 1")),
        ),
    ),
    check=_check,
)
