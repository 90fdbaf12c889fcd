"""A question prepared and answered: from a function, networks and context lengths to an answer, in one call.

Guarantee: exact; the same question asked twice computes nothing new, and a run that was stopped is resumed.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

import numpy as np

from genscope.fourier.expression import Expression
from genscope.lab import BUDGETS, Progress, Reference, Selection, Store, Study, run, select
from genscope.lab.execution.one_thread import one_thread
from genscope.lab.storage.store import DEFAULT_URL
from genscope.questions.answer import Answer, collect
from genscope.questions.networks import IDEAL
from genscope.questions.question import Question, ask
from genscope.questions.study import study
from genscope.questions.theory import limits
from genscope.questions.trial import check_network, check_task
from genscope.questions.user_files import UserFile, is_user_file, local, user_file
from genscope.refusal import Refusal
from genscope.tasks import AbstractTask

Build = Callable[..., Any]
Function = str | Expression | AbstractTask | Build


@dataclass(frozen=True, eq=False)
class PreparedQuestion:
    """A question with the study that answers it and what is selected of it."""

    question: Question
    study: Study
    selection: Selection

    def collect(self, store: Store) -> Answer:
        """The answer, from what is stored."""
        return collect(self.question, self.study, self.selection, store)


def prepare(
    function: Any,
    *,
    context_length: Any,
    network: str | Build | Iterable[str | Build] = "transformer",
    budget: str = "standard",
    **settings: Any,
) -> PreparedQuestion:
    """The study of a question as `learn` takes it, and its selection; everything that cannot be is refused here."""
    lengths = _whole(context_length)
    given = [network] if isinstance(network, str) or callable(network) else list(network)
    if not lengths:
        raise Refusal("learn got no context length: it needs at least one. Give, for example, 64.")
    if not given:
        raise Refusal("learn got no network: it needs at least one. Name, for example, transformer.")
    if not (isinstance(function, str) or callable(function) or isinstance(function, AbstractTask)):
        raise Refusal(
            f"learn got a function of type {type(function).__name__}: it must be an expression, a task, or a function "
            "of a key and a context length that makes a task. Write, for example, 'maj(x1,x4,x7)'."
        )
    if budget not in BUDGETS:
        raise Refusal(f"learn got {budget=}: budgets are {', '.join(BUDGETS)}. Choose one of them.")
    with one_thread():  # a user's builder uses JAX, which keeps what it is started with
        return _prepare(function, lengths, given, budget, settings)


def _prepare(
    function: Function, lengths: Sequence[int], given: Sequence[str | Build], budget: str, settings: dict[str, Any]
) -> PreparedQuestion:
    asked = function.text if isinstance(function, Expression) else function
    own = {index: _own(each) for index, each in enumerate(given) if callable(each) or is_user_file(each)}
    question = ask(asked if isinstance(asked, str) else local(asked), builders=tuple(own.values()), **settings)
    names = [own[index].label if index in own else str(each) for index, each in enumerate(given)]
    recipe = [name for name in ("rate", "steps", "optimizer") if settings.get(name) is not None]
    if recipe and set(names) == {IDEAL}:
        raise Refusal(
            f"learn got {' and '.join(recipe)} with the ideal learner alone, which trains nothing. Leave out what is "
            "about training, or name a network."
        )
    for length in lengths:
        question.check(length)
        check_task(question, length)
        for name in names:
            check_network(question, name, length)
    made = study(question, names, lengths, _references(question, lengths))
    where = {"context_length": lengths, "network": names}
    return PreparedQuestion(question, made, select(made, budget, where, reference=question.text))


def learn(
    function: Function,
    *,
    context_length: SupportsIndex | Iterable[SupportsIndex],
    network: str | Build | Iterable[str | Build] = "transformer",
    noise: float = 0.0,
    bias: float | Literal["balanced"] | None = None,
    accuracy: float = 1.0,
    error: float | None = None,
    success: float = 0.8,
    restarts: int = 1,
    fixed_support: bool = False,
    rate: float | None = None,
    steps: int | None = None,
    optimizer: str | None = None,
    width: float | None = None,
    budget: str = "standard",
    store: str | Store = DEFAULT_URL,
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    accept_changes: bool = False,
) -> Answer:
    """The samples that networks need to learn a function, and what theory says.

    `function` is an expression, a task, a function `task(key, context_length)`, or `my_file.py:task`; a network is a
    name, `my_file.py:build`, or a function `build(key, context_length)` that returns a module of Equinox or of PyTorch.
    Trials are computed in this process, or by so many `workers`, which need networks and tasks in files; results go to
    the store, and what is there is not computed again. Where stored trials were computed by code that has changed
    since, nothing is added to them unless `accept_changes`.
    """
    asked = prepare(
        function,
        context_length=context_length,
        network=network,
        budget=budget,
        noise=noise,
        bias=bias,
        accuracy=accuracy,
        error=error,
        success=success,
        restarts=restarts,
        fixed_support=fixed_support,
        rate=rate,
        steps=steps,
        optimizer=optimizer,
        width=width,
    )
    own = (asked.question.task, *asked.question.builders)
    typed = [file.name for file in own if file is not None and not file.path]
    if workers is not None and typed:
        raise Refusal(
            f"learn got workers={workers!r} and the function {typed[0]}: worker processes can only load networks "
            f"and tasks from files. Give it as 'my_file.py:{typed[0]}', or leave the workers out."
        )
    with nullcontext(store) if isinstance(store, Store) else Store(store) as opened:
        options = {"workers": workers, "progress": progress, "accept_changes": accept_changes}
        run(asked.study, asked.selection, store=opened, **options)
        return asked.collect(opened)


def _whole(given: Any) -> list[int]:
    """Context lengths, of which there may be one; whole numbers of any library."""
    try:
        return [operator.index(length) for length in (given if np.ndim(given) else [given])]
    except TypeError:
        raise Refusal(
            f"learn got context_length={given!r}: it must be a whole number or several. Give, for example, [64, 256]."
        ) from None


def _own(given: str | Build) -> UserFile:
    return user_file(given) if isinstance(given, str) else local(given)


def _references(question: Question, lengths: Sequence[int]) -> list[Reference]:
    """Curves of theory that a figure of thresholds shows."""
    found: dict[str, list[tuple[int, float]]] = {}
    for length in sorted({*lengths}):
        for each in limits(question, length):
            if each.sample_size:
                found.setdefault(each.name, []).append((length, each.sample_size))
    return [Reference(f"{name} (theory)", [x for x, _ in rows], [y for _, y in rows]) for name, rows in found.items()]
