"""Answer: what a question found, with what theory says beside it; for a terminal, a notebook, JSON and a figure.

Guarantee: exact; thresholds are those of the stored trials, whoever computed them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from genscope.display import Card, Displayed, Table
from genscope.extras import need
from genscope.files import draft, picture_kind
from genscope.lab import Reading, Selection, Store, Study, preview, read, select
from genscope.lab.execution.cores import cores
from genscope.questions import measured
from genscope.questions.networks import IDEAL, shown
from genscope.questions.placements import placements
from genscope.questions.question import SETTINGS, Question
from genscope.questions.theory import Statement, construction_norms, function_facts, statements
from genscope.questions.trial import network_of
from genscope.refusal import Refusal
from genscope.report import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARTICLES = {
    "transformer": "a Transformer",
    "bit-transformer": "a two-layer Transformer",
    "mlp": "an MLP",
    "rnn": "an RNN",
    "gru": "a GRU",
    "lstm": "an LSTM",
    "linear": "a linear model",
    IDEAL: "an ideal learner",
}
NEXT = {"quick": "standard", "standard": "paper"}


@dataclass(frozen=True, eq=False)
class Answer(Displayed):
    """What was asked, and what came out."""

    question: Question
    study: Study
    selection: Selection
    reading: Reading
    rows: tuple[dict[str, Any], ...]
    statements: tuple[Statement, ...]
    next_step: str | None

    @property
    def answers(self) -> pl.DataFrame:
        """One row per network and context length."""
        flat = [{**row, "plateau": row["plateau"] and row["plateau"]["value"]} for row in self.rows]
        kinds = {name: pl.Float64 for name in ("sample_size", "low", "high", "plateau", "seconds")}
        return pl.DataFrame(flat, schema_overrides=kinds)

    @property
    def theory(self) -> pl.DataFrame:
        """One row per statement and context length."""
        rows = [each.facts() for each in self.statements]
        return pl.DataFrame(rows, schema_overrides={"sample_size": pl.Float64, "vacuous": pl.Boolean})

    @property
    def laws(self) -> dict[str, Any]:
        """By network, the fitted laws over the context length."""
        return dict(measured.laws(self.reading))

    @property
    def function(self) -> dict[str, Any]:
        """Degree, sparsity, support and influence."""
        return function_facts(self.question)

    def facts(self) -> dict[str, Any]:
        """The answer as JSON has it."""
        asked = self.question
        return {
            "question": {
                "function": asked.asked,
                "study": self.study.name,
                "budget": self.selection.budget,
                **{name: getattr(asked, name) for name in SETTINGS if name != "width"},
                "probability": asked.probability,
                "criterion": asked.criterion,
                "placements": self.placements,
                "recipes": self.recipes,
            },
            "answers": list(self.rows),
            "laws": self.laws,
            "theory": [each.facts() for each in self.statements],
            "construction": self.construction,
            "function": self.function,
            "remarks": list(self.remarks),
            "summary": self.sentence,
            "next": self.next_step,
        }

    @property
    def placements(self) -> dict[str, int | None] | None:
        """By context length, how many functions the class has; None for a task of the user's."""
        if self.question.expression is None:
            return None
        return {str(length): placements(self.question, length) for length in self.lengths}

    @property
    def construction(self) -> dict[str, dict[str, float]] | None:
        """By context length, what the covering bound reads of the construction; None for a task of the user's."""
        if self.question.expression is None:
            return None
        return {str(length): dict(construction_norms(self.question, length)) for length in self.lengths}

    @property
    def recipes(self) -> dict[str, str]:
        """By network, what it is and how it was trained."""
        return {name: recipe(self.question, name) for name in dict.fromkeys(row["network"] for row in self.rows)}

    @property
    def lengths(self) -> list[int]:
        """Context lengths, in order."""
        return sorted({row["context_length"] for row in self.rows})

    @property
    def sentence(self) -> str:
        """The answer at the longest context in a sentence."""
        length = self.lengths[-1]
        said = [needed(row) for row in self.rows if row["context_length"] == length]
        here = [each for each in self.statements if each.context_length == length]
        bound = next((each for each in here if each.lower and each.sample_size), None)
        theory = "" if bound is None else f"; {bound.says} than {bound.sample_size:,.0f}"
        return f"{self.question.asked} at T = {length:,}: {', '.join(said)}{theory}."

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to beware of: trials that failed or diverged or were not computed alike, success that falls."""
        return measured.remarks(self.reading)

    def plot(self, path: Any = None) -> "Figure":
        """The report's figure of the thresholds, or of the success curves at a single length; written to `path`."""
        need("report", given="Answer.plot")
        from genscope.report.reduced import reduced
        from genscope.report.svg import WIDTH, save

        file = None if path is None else Path(path)
        kind = "" if file is None else picture_kind(file)
        thresholds, curves = self.study.figures
        found = reduced(curves if len(self.lengths) == 1 else thresholds, self.reading)
        if not found:
            raise Refusal("Answer.plot got no finished trial: all of them failed. The store holds their errors.")
        figure = found[0].draw(WIDTH)
        figure.suptitle(self.question.asked)
        if file is not None:
            with draft(file) as beside:
                save(figure, beside, kind)
        return figure

    def __repr__(self) -> str:
        return self.sentence

    def card(self) -> Card:
        """What is shown: the answer in a sentence, the thresholds, and what theory says."""
        rows = [
            [shown(row["network"]), row["context_length"], *interval(row), _rate(row), row["trials"]]
            for row in self.rows
        ]
        said = [
            [each.name, each.context_length, size(each.sample_size), kind(each), each.says] for each in self.statements
        ]
        tables = [
            Table(["network", "T", "samples", "95 % interval", "plateau", "trials"], rows),
            Table(["theory", "T", "samples", "trust", "says"], said),
        ]
        warnings = [f"Warning: {remark}." for remark in self.remarks]
        notes = (self.question.placing, self.question.criterion, *warnings, self.next_step)
        return Card(self.sentence, tables=tables, notes=[note for note in notes if note])


def recipe(question: Question, name: str) -> str:
    """What a network is and how it is trained, in a line."""
    if name == IDEAL:
        return "knows the function up to its placement and trains nothing; succeeds if no other placement fits as well"
    learner = network_of(question, name)
    words = learner.words
    if question.error is not None:
        words = f"{learner.words_for_numbers or words}, trained on the squared error"
    return f"{words}; {learner.recipe.override(question.rate, question.steps, question.optimizer).words}"


def needed(row: dict[str, Any]) -> str:
    """What a network needs, in a few words."""
    who = ARTICLES.get(row["network"], shown(row["network"]))
    number, between = interval(row)
    match row["state"]:
        case "crossed":
            return f"{who} needs {number} {between} samples"
        case "above":
            return f"{who} needs more than {row['low']:,.0f} samples"
        case "below":
            return f"{who} needs at most {row['high']:,.0f} samples"
        case "plateau":
            return f"{who} succeeds in {_rate(row)} of runs at most, however many samples it gets"
    return f"{who} needs a number of samples that this budget does not determine ({between})"


def interval(row: dict[str, Any]) -> tuple[str, str]:
    """The threshold and its interval."""
    if row["state"] == "above":
        return f"> {row['low']:,.0f}", "open"
    if row["state"] == "below":
        return f"≤ {words.number(row['high'])}", "open"
    number, between = words.measured(row["sample_size"], row["low"], row["high"])
    return "unknown" if row["sample_size"] is None else number, between


def _rate(row: dict[str, Any]) -> str:
    known = row["plateau"]
    return "unknown" if known is None else f"{100 * known['value']:.0f} %"


def size(value: float | None) -> str:
    """A number of samples in words."""
    return "–" if value is None else words.number(math.ceil(value))


def kind(each: Statement) -> str:
    """How far a statement can be trusted."""
    proved = "explicit" if each.explicit else "order"
    return proved if each.vacuous is None else f"{proved}, {'vacuous' if each.vacuous else 'non-vacuous'}"


def collect(question: Question, study: Study, selection: Selection, store: Store) -> Answer:
    """The answer to a question, from what is stored."""
    reading = read(store, selection)
    rows = tuple(measured.answers(reading))
    said: list[Statement] = []
    for length in sorted({row["context_length"] for row in rows}):
        here = [row for row in rows if row["context_length"] == length]
        trained = [row for row in here if row["network"] != IDEAL]
        learned = [row["sample_size"] or row["low"] for row in trained if row["sample_size"] or row["low"]]
        said += statements(question, length, [row["network"] for row in trained], max(learned, default=None))
    return Answer(
        question, study, selection, reading, rows, tuple(said), _next_step(study, selection, store, reading, rows)
    )


def _diverged(frame: pl.DataFrame, row: dict[str, Any]) -> bool:
    """Whether all of a point's runs did; an ideal learner has none."""
    if "diverged" not in frame.columns:
        return False
    point = frame.filter(network=row["network"], context_length=row["context_length"], status="ok")
    return bool(point["diverged"].fill_null(value=False).all())


def _next_step(
    study: Study, selection: Selection, store: Store, reading: Reading, rows: Sequence[dict[str, Any]]
) -> str | None:
    """What to ask for where the budget leaves a threshold open, and about how long it takes."""
    unsettled = [row for row in rows if row["state"] in ("above", "unresolved") and row["trials"]]
    diverged = [row for row in unsettled if _diverged(reading.frame, row)]
    if not unsettled:
        return None
    if diverged:
        names = ", ".join(dict.fromkeys(shown(row["network"]) for row in diverged))
        return f"Every run of {names} diverged: give a lower --rate."
    budget = NEXT.get(selection.budget or "")
    if budget is None:
        return "No budget is larger: raise --steps, change --rate, or ask for a lower --success or --accuracy."
    where = {
        "context_length": [*{row["context_length"] for row in unsettled}],
        "network": [*{row["network"] for row in unsettled}],
    }
    ahead = preview(store, select(study, budget, where), workers=1)
    if ahead.seconds is None or ahead.trials == ahead.stored:
        return f"Continue with --budget {budget}."
    longest = ahead.seconds / (ahead.trials - ahead.stored) * (ahead.most - ahead.stored) / cores()
    return f"Continue with --budget {budget}, about {words.duration(longest)} at most."
