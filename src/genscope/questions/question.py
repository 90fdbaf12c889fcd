"""Question: which function is to be learned, from what data, and what counts as success.

Networks and context lengths are axes of the study that answers it, so that another network or length adds trials to the
same study.

Departures: expressions are known by their class, all placements of their variables: `maj(x1,x4,x7)` and `maj(x0,x1,x2)`
are one question unless the support is fixed.
Guarantee: exact; two questions with the same trials have the same name.
"""

import dataclasses
import functools
import hashlib
import json
import math
import numbers
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Array, Key

from genscope.fourier import parse
from genscope.fourier.expression import Expression
from genscope.questions.recipes import Recipe
from genscope.questions.user_files import UserFile, is_user_file, user_file
from genscope.refusal import Refusal
from genscope.tasks import AbstractTask, SparseExpression

LARGEST_SUPPORT = 12
MOST_RESTARTS = 100


@dataclass(frozen=True)
class Question:
    """What is asked. Everything but `asked`, `success` and `width` determines the trials."""

    function: str
    """An expression with its variables numbered from 0 (as they are with a fixed support), or the label of `task`."""
    noise: float = 0.0
    """Probability with which a training label is flipped."""
    bias: float | None = None
    """Probability that a bit is 1; None for the one that balances the labels."""
    accuracy: float = 1.0
    """Share of 10,000 held-out examples, with clean labels, that a run must get right."""
    error: float | None = None
    """Mean squared error on 10,000 held-out examples that a run must reach, of a target of numbers; None for labels."""
    restarts: int = 1
    fixed_support: bool = False
    rate: float | None = None
    steps: int | None = None
    optimizer: str | None = None
    task: UserFile | None = None
    builders: tuple[UserFile, ...] = ()
    asked: str = ""
    """The function in the user's own words."""
    success: float = 0.8
    """Share of trials that must succeed."""
    width: float | None = None
    """Half of the relative width of the interval that is looked for; None for the budget's."""

    def __post_init__(self) -> None:
        checks = {
            "noise": (0 <= self.noise < 0.5, "it is the probability of flipping a label, from 0 to below 0.5"),
            "bias": (
                self.bias is None or 0 < self.bias < 1,
                "it is the probability that a bit is 1, strictly between 0 and 1",
            ),
            "accuracy": (0.5 < self.accuracy <= 1, "it must be above 0.5 and at most 1"),
            "error": (self.error is None or 0 < self.error < 1e6, "a mean squared error must be positive"),
            "success": (0 < self.success < 1, "it is a share of trials, strictly between 0 and 1"),
            "restarts": (1 <= self.restarts <= MOST_RESTARTS, f"a trial can train 1 to {MOST_RESTARTS} networks"),
            "width": (self.width is None or 0.01 <= self.width <= 10, "it must be between 0.01 and 10"),
        }
        for name, (fits, allowed) in checks.items():
            if not fits:
                raise Refusal(f"learn got {name} {getattr(self, name)}: {allowed}. Change it.")
        if self.error is not None and (self.noise or self.restarts > 1 or self.accuracy < 1):
            raise Refusal(
                f"learn got an error of {self.error} with noise {self.noise}, restarts {self.restarts} and accuracy "
                f"{self.accuracy}: noise, restarts and accuracy only make sense for labels 0 and 1, not for a "
                "target with numbers as labels. Leave them out."
            )
        Recipe().override(self.rate, self.steps, self.optimizer)

    @functools.cached_property
    def name(self) -> str:
        """Of the study: words of the function, and a hash of all that determines the trials."""
        standard = dataclasses.asdict(Question(self.function))
        given = dataclasses.asdict(self)
        facts = {name: given[name] for name in given if name not in _TOLD and given[name] != standard[name]}
        if self.task is not None:
            facts["task"] = self.task.digest
        text = json.dumps({"function": self.function, **facts}, sort_keys=True)
        words = re.sub(r"[^a-z0-9]+", "-", self.function.partition("@")[0].lower()).strip("-")[:40].strip("-")
        return f"learn-{words}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @functools.cached_property
    def expression(self) -> Expression | None:
        """The function, if it is an expression."""
        return None if self.task is not None else parse(self.function)

    @property
    def support_size(self) -> int | None:
        """How many bits matter, if that is known."""
        return None if self.expression is None else len(self.expression.support)

    @functools.cached_property
    def probability(self) -> float | None:
        """That a bit is 1, if the function is an expression."""
        if self.expression is None:
            return None
        support, table = self.expression.reduced
        places = range(len(support))
        return SparseExpression.at(places, table, context_length=len(places), probability=self.bias).probability

    @property
    def label_bits(self) -> float:
        """What one label says at most, in bits: 1 less the entropy of its noise."""
        p = self.noise
        return 1.0 + (p * math.log2(p) + (1 - p) * math.log2(1 - p) if p else 0.0)

    @property
    def criterion(self) -> str:
        """When a trial succeeds, in a sentence or two."""
        right = "all" if self.accuracy == 1 else f"{100 * self.accuracy:g} %"
        said = f"A trial succeeds when its network gets {right} of 10,000 held-out examples right"
        if self.error is not None:
            said = f"A trial succeeds when the mean squared error on 10,000 held-out examples is at most {self.error:g}"
        if self.noise:
            said += f", with clean labels; training labels are flipped with probability {self.noise:g}"
        if self.restarts > 1:
            said += (
                f". Of {self.restarts} networks trained on each sample, the one that agrees best with another counts"
            )
        return f"{said}."

    @property
    def placing(self) -> str:
        """Where the relevant bits are, in a sentence; of a task of the user's nothing is known."""
        if self.expression is None:
            return ""
        if self.fixed_support:
            return "The bits stay where the expression has them."
        return "Each trial places the relevant bits at random."

    def draw(self, key: Key[Array, ""], context_length: int) -> AbstractTask:
        """The task of one trial."""
        if self.task is not None:
            return made_task(self.task, key, context_length)
        assert self.expression is not None
        known: dict[str, Any] = {"context_length": context_length, "probability": self.probability}
        if self.fixed_support:
            support, table = self.expression.reduced
            return SparseExpression.at(support, table, **known)
        return SparseExpression.draw(key, expression=self.expression, **known)

    def check(self, context_length: int) -> None:
        """Refuse a context that cannot hold the function."""
        if context_length < 1 or context_length > 1_000_000:
            raise Refusal(f"learn got a context of {context_length} bits: it must have 1 to 1,000,000. Change it.")
        if self.expression is None:
            return
        needed = max(self.expression.support) + 1 if self.fixed_support else len(self.expression.support)
        if context_length < needed:
            raise Refusal(
                f"learn got {self.asked} with a context of {context_length} bits: the function needs {needed}"
                f"{'' if self.fixed_support else ', placed at random (the numbers of its variables do not matter)'}. "
                "Lengthen the context."
            )

    @property
    def text(self) -> str:
        """How `genscope run` finds the study again: `learn:EXPR`, with what differs from the defaults after it."""
        standard = Question(function="")
        given = [f"{n}={_word(getattr(self, n))}" for n in SETTINGS if getattr(self, n) != getattr(standard, n)]
        given += [f"network={file.path}:{file.name}" for file in self.builders]
        return "#".join([f"learn:{self.asked if self.task is None else f'{self.task.path}:{self.task.name}'}", *given])

    def encoded(self) -> str:
        """The question as a Python name, by which worker processes find its study."""
        return f"q_{json.dumps(dataclasses.asdict(self)).encode().hex()}"

    @staticmethod
    def decoded(name: str) -> "Question":
        """The question of such a name."""
        facts = json.loads(bytes.fromhex(name.removeprefix("q_")))
        facts["task"] = facts["task"] and UserFile(**facts["task"])
        return Question(**facts | {"builders": tuple(UserFile(**each) for each in facts["builders"])})


# What may be asked for besides the function and the networks, and how it is read from text.
SETTINGS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("noise", "bias", "accuracy", "error"), float),
    "restarts": int,
    "fixed_support": lambda word: word == "True",
    "rate": float,
    "steps": int,
    "optimizer": str,
    **dict.fromkeys(("success", "width"), float),
}
_KINDS: Mapping[type, Any] = {float: numbers.Real, int: numbers.Integral, bool: (bool, np.bool), str: str}
_KIND_WORDS = {float: "a number", int: "a whole number", bool: "True or False", str: "a word"}
_TOLD = ("asked", "success", "width", "builders")  # they do not change a trial


def ask(function: str | UserFile, *, builders: tuple[UserFile, ...] = (), **given: Any) -> Question:
    """The question about a function, an expression or a task of the user's; `builders` make networks of theirs."""
    settings = {name: _plain(name, value) for name, value in given.items()}
    task = user_file(function) if isinstance(function, str) and is_user_file(function) else function
    if isinstance(task, UserFile):
        function = task.name if isinstance(function, UserFile) else function
        if settings.get("bias") is not None or settings.get("fixed_support"):
            raise Refusal(
                f"learn got the task {function} with a bias or a fixed support: your own task draws its inputs and "
                "its support itself. Leave these options out."
            )
        return Question(task.label, task=task, builders=builders, asked=function, **settings)
    function = task
    expression = parse(function)
    if settings.get("error") is not None:
        raise Refusal(
            f"learn got {function!r} with an error of {settings['error']}: an expression has labels 0 and 1, and "
            "--accuracy says what share of them must be right. Use that, or bring your own task with numbers as "
            "labels."
        )
    support = expression.support
    if not support:
        raise Refusal(
            f"learn got {function!r}, which is constant: there is nothing to learn. Write a function that depends on "
            "some bit."
        )
    if len(support) > LARGEST_SUPPORT:
        raise Refusal(
            f"learn got {function!r}, which depends on {len(support)} bits: at most {LARGEST_SUPPORT} are allowed. "
            "Write a function of fewer bits, or bring a task of your own."
        )
    text = "".join(function.split())
    if not settings.get("fixed_support"):
        text = _renumbered(text, expression.variables)
    return Question(text, builders=builders, asked=function, **settings)


def _plain(name: str, value: Any) -> Any:
    """A setting as a Python number or word, whichever library's number it was."""
    if name not in SETTINGS:
        raise TypeError(f"ask() got an unexpected setting {name!r}")
    if value is None or (name == "bias" and value == "balanced"):
        return None
    wanted = type(SETTINGS[name]("1"))
    if isinstance(value, _KINDS[wanted]) and (wanted is bool or not isinstance(value, bool | np.bool)):
        return wanted(value)
    raise Refusal(
        f"learn got {name}={value!r} of type {type(value).__name__}: it must be {_KIND_WORDS[wanted]}"
        f"{', or the word balanced' if name == 'bias' else ''}. Change it."
    )


def _renumbered(text: str, variables: tuple[int, ...]) -> str:
    """The expression with its variables numbered from 0, in their order.

    >>> _renumbered("x7 & maj(x1,x20,x3)", (1, 3, 7, 20))
    'x2 & maj(x0,x3,x1)'
    """
    place = {variable: number for number, variable in enumerate(variables)}
    return re.sub(r"\bx(\d+)\b", lambda found: f"x{place[int(found[1])]}", text)


def parsed(text: str) -> Question:
    """The question of `Question.text`."""
    function, *given = text.removeprefix("learn:").split("#")
    settings: dict[str, Any] = {}
    networks = []
    for part in given:
        name, _, word = part.partition("=")
        if name == "network":
            networks.append(word)
        elif name in SETTINGS:
            settings[name] = SETTINGS[name](word)
        else:
            raise Refusal(
                f"got {text!r}, in which {name!r} is not a setting: settings are {', '.join(SETTINGS)}. Correct it."
            )
    return ask(function, builders=tuple(map(user_file, networks)), **settings)


def _word(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def made_task(file: UserFile, key: Key[Array, ""], context_length: int) -> AbstractTask:
    """The user's task: an object as it is, or what their function makes of a key and the context length."""
    found = file.found()
    made = found if isinstance(found, AbstractTask) else file.call(key, context_length)
    if not isinstance(made, AbstractTask):
        raise Refusal(
            f"got {file.label}, which gives a {type(made).__name__}: it must be a genscope.tasks.AbstractTask, or a "
            "function of a key and a context length that makes one. Return a task."
        )
    return made
