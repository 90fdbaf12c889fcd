"""The room Learn: networks train on the expression of the page, step by step, in a process beside the server.

Guarantee: what a page may ask for is limited in size, and one training works at a time (`training`); a request starts
it, looks at it or stops it, and waits for nothing. Expressions only: no page can name a file.
"""

from typing import Any

from genscope.explorer import asking
from genscope.explorer.function_room import GALLERY
from genscope.explorer.room import Ask, Room
from genscope.explorer.training import Training
from genscope.fourier.expression import parse
from genscope.refusal import Refusal

LONGEST = 2_000  # characters
MOST_VARIABLES = 12
LARGEST_CONTEXT, LARGEST_SAMPLE = 128, 4_000
MOST_NOISE = 0.4
NETWORKS = {  # as `questions.networks` knows them; importing that would bring JAX into the server
    "transformer": "Transformer",
    "bit-transformer": "two-layer Transformer",
    "mlp": "MLP",
    "rnn": "RNN",
    "gru": "GRU",
    "lstm": "LSTM",
    "linear": "linear model",
}
EXAMPLES = ("And", "Majority of 5", "Not all equal")


def room(store: str) -> Room:
    """The room; what is trained goes to the store."""
    training = Training()
    page = {
        "networks": NETWORKS,
        "gallery": [each for each in GALLERY if each[0] in EXAMPLES],
        "longest": LONGEST,
        "most": MOST_VARIABLES,
        "largest_context": LARGEST_CONTEXT,
        "largest_sample": LARGEST_SAMPLE,
    }
    return Room(
        "learn",
        "Learn",
        "Train networks on a function, watch them find the bits that matter, and ask how many samples they need.",
        {
            "start": lambda ask: {"number": training.start(request(ask), store=store)},
            "look": lambda ask: _look(training, ask),
            "stop": lambda ask: training.stop() or {},
        },
        page=lambda: page,
        close=training.close,
    )


def _look(training: Training, ask: Ask) -> dict[str, Any]:
    number = asking.whole(ask, "number", least=0, most=2**31, default=0)
    return training.look(number, asking.whole(ask, "since", least=0, most=2**31, default=0))


def request(ask: Ask) -> dict[str, Any]:
    """What a page asks for, checked: `kind` "run" or "threshold"."""
    expression = parse(asking.text(ask, "expression", longest=LONGEST))
    if len(expression.variables) > MOST_VARIABLES:
        raise Refusal(
            f"the expression mentions {len(expression.variables)} variables: this page trains on functions of at "
            f"most {MOST_VARIABLES}. Use fewer here; genscope learn with a task from your own file has no limit."
        )
    networks = ask.get("networks")
    if not isinstance(networks, list) or not networks or any(each not in [*NETWORKS] for each in networks):
        raise Refusal(f"the request names no known network: networks are {', '.join(NETWORKS)}. Choose one or more.")
    return {
        "kind": asking.choice(ask, "kind", ("run", "threshold")),
        "expression": expression.text,
        "networks": list(dict.fromkeys(networks)),
        "context_length": asking.whole(ask, "context_length", least=1, most=LARGEST_CONTEXT),
        "sample_size": asking.whole(ask, "sample_size", least=1, most=LARGEST_SAMPLE, default=1),
        "noise": asking.number(ask, "noise", least=0, most=MOST_NOISE, default=0),
    }
