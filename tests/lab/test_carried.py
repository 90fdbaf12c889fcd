"""What a function carries besides its text: the same text for the same state, another one for another."""

import functools
import threading
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.lab.plans.carried import Carried


def base(key, **given):
    return given


def double(x):
    return 2 * x


def closure(value):
    def trial(key):
        return value

    return trial


class Holder:
    def __init__(self, value):
        self.value = value

    def __call__(self, key):
        return self.value

    def trial(self, key):
        return self.value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __call__(self, key):
        return self.value


def typed(value):
    names = {"value": value}
    exec("def helper():\n    return value\n\ndef trial(key):\n    return helper()\n", names)
    return names["trial"]


MAKERS = {
    "partial": lambda value: functools.partial(base, value=value),
    "default": lambda value: functools.partial(lambda key, held=value: held),
    "closure": closure,
    "wrapper": lambda value: functools.wraps(base)(closure(value)),
    "cached": lambda value: functools.cache(closure(value)),
    "method": lambda value: Holder(value).trial,
    "object": Holder,
    "slots": Slotted,
    "typed in": typed,
}
VALUES = {
    "numbers": (lambda: 1, lambda: 2),
    "nested": (lambda: {"a": [1, (2.0, None)]}, lambda: {"a": [1, (2.5, None)]}),
    "sets": (lambda: set("abc"), lambda: set("xyz")),
    "arrays": (lambda: np.zeros(2000), lambda: np.eye(1, 2000, 1000)[0]),
    "arrays of jax": (lambda: jnp.zeros(3), lambda: jnp.ones(3)),
    "keys": (lambda: jr.key(0), lambda: jr.key(1)),
    "generators": (lambda: np.random.default_rng(0), lambda: np.random.default_rng(1)),
    "types of numbers": (lambda: np.float32, lambda: np.float64),
    "objects": (lambda: Holder(1), lambda: Holder(2)),
    "functions": (lambda: closure(1), lambda: closure(2)),
    "functions of others": (lambda: np.sum, lambda: np.prod),
    "universal functions": (lambda: np.add, lambda: np.multiply),
    "methods of C": (lambda: [1].append, lambda: [2].append),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(("first", "second"), VALUES.values(), ids=VALUES)
def test_state_is_told_from_other_state_and_not_from_itself(make, first, second):
    assert Carried(make(first())).text == Carried(make(first())).text
    assert Carried(make(first())).text != Carried(make(second())).text


def test_a_function_by_itself_carries_nothing():
    assert Carried(base).text == ""
    assert Carried(base).written == [base]


def test_plain_arguments_are_told_as_they_are_printed():
    assert Carried(functools.partial(base, 1, b=(2,), a=[None, {"x": 1.5}])).text == repr(
        [1, ("a", [None, {"x": 1.5}]), ("b", (2,))]
    )


def test_functions_and_classes_inside_are_listed_for_their_text():
    carried = Carried(functools.partial(base, rule=double, all=[Holder(1)]))
    assert [each for each in carried.written if each.__module__ == __name__] == [base, Holder, double]


def test_what_cannot_be_saved_is_its_class():
    assert Carried(Holder(threading.Lock())).text == Carried(Holder(threading.Lock())).text


def test_a_function_that_holds_itself_ends():
    holder: Any = Holder(None)
    holder.value = holder
    assert Carried(holder).text == Carried(holder).text


def test_a_list_that_holds_itself_ends():
    made: list[Any] = [1]
    made.append(made)
    assert Carried(functools.partial(base, made)).text == "[[1, ...]]"


class Tensor:
    """As PyTorch's, of which NumPy may not be given one that requires a gradient."""

    dtype, shape = np.dtype(float), (2,)

    def __init__(self, number, attached=True):
        self.number, self.attached = number, attached

    def __array__(self, dtype=None, copy=None):
        if self.attached:
            raise RuntimeError
        return np.full(2, self.number)

    def detach(self):
        return Tensor(self.number, attached=False)

    def cpu(self):
        return self


def test_a_list_nested_beyond_all_measure_ends():
    made: list[Any] = []
    for _ in range(100_000):
        made = [made]
    assert Carried(functools.partial(base, made)).text


def test_a_tensor_that_requires_a_gradient_is_told_by_its_numbers():
    [first, again, other] = (Carried(functools.partial(base, Tensor(number))).text for number in (1.0, 1.0, 2.0))
    assert first == again != other


def test_another_body_of_a_function_that_was_typed_in_is_seen():
    made = []
    for body in ("1", "2"):
        exec(f"def trial(key):\n    return {body}\n", names := {})
        made.append(Carried(names["trial"]).text)
    assert made[0] != made[1]
