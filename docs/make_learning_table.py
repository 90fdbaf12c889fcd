"""Write docs/learning.md: which network learns what from how many samples, by `genscope learn`.

`python docs/make_learning_table.py [STORE [NETWORK ...]]` asks the questions about these networks, or all, that
the store has no answer to, and writes the table from what is stored, cell by cell. It may be stopped and started again.
With `--stored`, nothing is computed; `--accept-changes` goes on from trials that other code computed.
"""

import sys
from pathlib import Path

import genscope as gs
from genscope.questions.answer import Answer, interval
from genscope.questions.networks import NAMED
from genscope.questions.prepared import prepare

FUNCTIONS = {
    "AND of 3": "x0&x1&x2",
    "OR of 3": "x0|x1|x2",
    "majority of 3": "maj(x0,x1,x2)",
    "majority of 5": "maj(x0,x1,x2,x3,x4)",
    "parity of 2": "x0^x1",
    "parity of 3": "x0^x1^x2",
    "address: x0 chooses x1 or x2": "~x0&x1|x0&x2",
    "a random table of 3": "table(0x1d;x0,x1,x2)",
    "majority of 3 xor a bit": "maj(x0,x1,x2)^x3",
    "2 of 4": "thr(2;x0,x1,x2,x3)",
}
NETWORKS = ("ideal", "linear", "mlp", "transformer", "bit-transformer", "deep-2x4x32", "rnn", "gru", "lstm")
CONTEXT_LENGTH, WIDTH = 16, 0.5
SETTINGS = {"context_length": CONTEXT_LENGTH, "budget": "quick", "width": WIDTH}
PAGE = Path(__file__).parent / "learning.md"
EARLIER = {  # at T = 20 with a width of 0.3, given up at a loss of 0.01 (now 0.001); the store was not kept
    "AND of 3": "34 [28, 44]",
    "OR of 3": "35 [30, 43]",
    "majority of 3": "45 [38, 51]",
    "majority of 5": "74 [59, 91]",
    "parity of 2": "653 [445, 1 151]",
    "parity of 3": "> 2,000",
    "address: x0 chooses x1 or x2": "149 [126, 187]",
    "a random table of 3": "198 [154, 248]",
}


def cell(answer: Answer | None) -> str:
    """Samples with their interval, a bound, or a blank where nothing is stored."""
    if answer is None:
        return ""
    [row] = answer.rows
    if row["state"] == "plateau":
        return f"no: {100 * row['plateau']['value']:.0f} % at most"
    number, between = interval(row)
    if row["state"] == "crossed":
        return f"{number} {between}"
    return {"above": f"> {row['low']:,.0f}", "below": f"≤ {row['high'] or 0:,.0f}"}.get(row["state"], between)


def answered(store: gs.Store, function: str, network: str, *, compute: bool) -> Answer | None:
    """The answer, computed where it is not stored and that is asked for."""
    if compute:
        changed = "--accept-changes" in sys.argv
        return gs.learn(function, network=network, store=store, accept_changes=changed, **SETTINGS)
    asked = prepare(function, network=network, **SETTINGS)
    found = asked.collect(store)
    return found if len(found.reading.frame) and not found.reading.missing else None


def main() -> None:
    """Ask, network by network, and write the page after each answer."""
    given = [word for word in sys.argv[1:] if not word.startswith("--")]
    url, asked = given[0] if given else "sqlite:///genscope.db", given[1:] or NETWORKS
    cells: dict[tuple[str, str], str] = {}
    with gs.Store(url) as store:
        for network in sorted(NETWORKS, key=lambda each: each in asked):  # what is stored first
            compute = network in asked and "--stored" not in sys.argv
            for name, function in FUNCTIONS.items():
                cells[name, network] = cell(answered(store, function, network, compute=compute))
                if compute:
                    print(f"{network}, {name}: {cells[name, network]}", flush=True)
                PAGE.write_text(page(cells), encoding="utf-8")


def page(cells: dict[tuple[str, str], str]) -> str:
    """The page."""
    measured = [network for network in NETWORKS if any(cells.get((name, network)) for name in FUNCTIONS)]
    lines = [
        "# Which network learns what",
        "",
        f"Samples at which 80 % of trials get all of 10,000 held-out examples right, with 95 % intervals, at T = "
        f"{CONTEXT_LENGTH} bits, measured by `genscope learn EXPR --context-length {CONTEXT_LENGTH} --budget quick "
        f"--width {WIDTH}`, which prints the recipe of each network. Each trial draws the relevant bits at random; "
        'bits are 1 with the probability that balances the labels. "> 2,000" is where the quick budget ends; "no" '
        "means that the success rate levels off below 80 %. The ideal learner knows the function and searches for its "
        "bits. Written by `python docs/make_learning_table.py`; an empty cell has not been measured.",
        "",
        f"| function | expression | {' | '.join(measured)} |",
        f"|---|---|{'---|' * len(measured)}",
    ]
    for name, function in FUNCTIONS.items():
        shown = function.replace("|", "\\|")
        lines.append(f"| {name} | `{shown}` | {' | '.join(cells.get((name, network), '') for network in measured)} |")
    recipes = [
        f"- {network}: {NAMED[network].words}; {NAMED[network].recipe.words}"
        for network in measured
        if network in NAMED
    ]
    if not all(cells.get((name, "transformer")) for name in FUNCTIONS):
        told = "; ".join(f"{name} {found}" for name, found in EARLIER.items())
        lines += [
            "",
            f"The Transformer, measured earlier at T = 20 with an earlier recipe (docs/decisions.md): {told}.",
        ]
    return "\n".join([*lines, "", "Recipes, chosen on exploratory seeds (docs/decisions.md):", "", *recipes, ""])


if __name__ == "__main__":
    main()
