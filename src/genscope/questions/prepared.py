"""A question prepared and answered: from a function, networks and context lengths to an answer, in one call.

Guarantee: exact; the same question asked twice computes nothing new, and a run that was stopped is resumed.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from genscope.lab import BUDGETS, Progress, Reference, Selection, Store, Study, run, select
from genscope.lab.execution.one_thread import one_thread
from genscope.questions.answer import Answer, collect
from genscope.questions.networks import IDEAL
from genscope.questions.question import Question, ask
from genscope.questions.study import study
from genscope.questions.theory import limits
from genscope.questions.trial import check_network, check_task
from genscope.questions.user_files import UserFile, is_user_file, local, user_file
from genscope.refusal import Refusal

DEFAULT_STORE = "sqlite:///genscope.db"
Build = Callable[..., Any]


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
    function: str,
    *,
    context_length: int | Sequence[int],
    network: str | Build | Sequence[str | Build] = "transformer",
    budget: str = "standard",
    **settings: Any,
) -> PreparedQuestion:
    """The study of a question, and its selection; everything that cannot be is refused here."""
    lengths = [context_length] if isinstance(context_length, int) else list(context_length)
    given = [network] if isinstance(network, str) or callable(network) else list(network)
    if not lengths or not given:
        raise Refusal(f"learn got {len(lengths)} context lengths and {len(given)} networks: name at least one of each.")
    if budget not in BUDGETS:
        raise Refusal(f"learn got {budget=}: budgets are {', '.join(BUDGETS)}. Choose one of them.")
    with one_thread():  # a user's builder uses JAX, which keeps what it is started with
        return _prepare(function, lengths, given, budget, settings)


def _prepare(
    function: str, lengths: Sequence[int], given: Sequence[str | Build], budget: str, settings: dict[str, Any]
) -> PreparedQuestion:
    own = {index: _own(each) for index, each in enumerate(given) if callable(each) or is_user_file(each)}
    question = ask(function, builders=tuple(own.values()), **settings)
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
    function: str,
    *,
    context_length: int | Sequence[int],
    network: str | Build | Sequence[str | Build] = "transformer",
    noise: float = 0.0,
    bias: float | None = None,
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
    store: str | Store = DEFAULT_STORE,
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    accept_changes: bool = False,
) -> Answer:
    """The samples that networks need to learn a function, and what theory says.

    `function` is an expression, or `my_file.py:task`; a network is a name, `my_file.py:build`, or a function
    `build(key, context_length)` that returns a module of Equinox or of PyTorch. Trials are computed in this process, or
    by so many `workers`, which need networks in files; results go to the store, and what is there is not computed
    again. Where stored trials were computed by code that has changed since, nothing is added to them unless
    `accept_changes`.
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
    typed = [file.name for file in asked.question.builders if not file.path]
    if workers is not None and typed:
        raise Refusal(
            f"learn got workers={workers!r} and the function {typed[0]}: worker processes can only load networks "
            "from files. Give it as 'my_file.py:build', or leave the workers out."
        )
    with nullcontext(store) if isinstance(store, Store) else Store(store) as opened:
        options = {"workers": workers, "progress": progress, "accept_changes": accept_changes}
        run(asked.study, asked.selection, store=opened, **options)
        return asked.collect(opened)


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
