"""Write docs/learning.md: which network learns what from how many samples, by `genscope learn`.

`python docs/make_learning_table.py [STORE [NETWORK ...]]` asks the questions about these networks, or all, that have no
answer yet. Answers are kept in docs/learning.json, one by one, so it may be stopped and started again, elsewhere too;
one whose recipe or revision is no longer the program's is asked for anew. With `--kept`, nothing is computed.
"""

import json
import sys
from pathlib import Path

import genscope as gs
from genscope.questions.answer import Answer, interval
from genscope.questions.networks import IDEAL, named
from genscope.questions.study import REVISION

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
NETWORKS = ("ideal", "linear", "mlp", "transformer", "bit-transformer", "deep-2x4x32", "rnn", "gru")
CONTEXT_LENGTH, WIDTH = 16, 0.5
SETTINGS = {"context_length": CONTEXT_LENGTH, "budget": "quick", "width": WIDTH}
PAGE = Path(__file__).parent / "learning.md"
KEPT = PAGE.with_suffix(".json")

Cells = dict[str, dict[str, dict[str, str | int]]]  # by function and network


def cell(answer: Answer) -> str:
    """Samples with their interval, or a bound."""
    [row] = answer.rows
    if row["state"] == "plateau":
        return f"no: {100 * row['plateau']['value']:.0f} % at most"
    number, between = interval(row)
    if row["state"] == "crossed":
        return f"{number} {between}"
    return {"above": f"> {row['low']:,.0f}", "below": f"≤ {row['high'] or 0:,.0f}"}.get(row["state"], between)


def made_by(network: str) -> dict[str, str | int]:
    """What an answer rests on besides the function; an answer that rests on something else is not kept."""
    recipe = "none" if network == IDEAL else f"{named(network).words}; {named(network).recipe.words}"
    return {"revision": REVISION, "recipe": recipe}


def kept() -> Cells:
    """The answers that are still those of the program."""
    stored: Cells = json.loads(KEPT.read_text(encoding="utf-8"))
    return {
        name: {
            network: found
            for network, found in stored.get(name, {}).items()
            if made_by(network).items() <= found.items()
        }
        for name in FUNCTIONS
    }


def main() -> None:
    """Ask what is not known, network by network, and write both files after each answer."""
    given = [word for word in sys.argv[1:] if not word.startswith("--")]
    url, asked = given[0] if given else "sqlite:///genscope.db", given[1:] or NETWORKS
    cells = kept()
    write(cells)
    missing = [(network, name) for network in asked for name in FUNCTIONS if network not in cells[name]]
    if "--kept" in sys.argv:
        return
    with gs.Store(url) as store:
        for network, name in missing:
            answer = gs.learn(FUNCTIONS[name], network=network, store=store, **SETTINGS)
            cells[name][network] = {"samples": cell(answer), **made_by(network)}
            print(f"{network}, {name}: {cells[name][network]['samples']}", flush=True)
            write(cells)


def write(cells: Cells) -> None:
    """Both files."""
    ordered = {name: {each: found[each] for each in NETWORKS if each in found} for name, found in cells.items()}
    KEPT.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(cells), encoding="utf-8")


def page(cells: Cells) -> str:
    """The page."""
    measured = [network for network in NETWORKS if any(network in found for found in cells.values())]
    complete = all(network in found for network in NETWORKS for found in cells.values())
    blank = "" if complete else "; an empty cell has not been measured"
    lines = [
        "# Which network learns what",
        "",
        f"Samples at which 80 % of trials get all of 10,000 held-out examples right, with 95 % intervals, at T = "
        f"{CONTEXT_LENGTH} bits, measured by `genscope learn EXPR --context-length {CONTEXT_LENGTH} --budget quick "
        f"--width {WIDTH}`, which prints the recipe of each network. Each trial draws the relevant bits at random; "
        'bits are 1 with the probability that balances the labels. "> 2,000" is where the quick budget ends; "at '
        'least" is a lower limit, where 160 trials leave the upper one open; "no" means that the success rate levels '
        "off below 80 %. The ideal learner knows the function and searches for its bits; the LSTM, which costs what "
        f"the GRU does, is left out. Written by `python docs/make_learning_table.py`{blank}.",
        "",
        f"| function | expression | {' | '.join(measured)} |",
        f"|---|---|{'---|' * len(measured)}",
    ]
    for name, function in FUNCTIONS.items():
        shown = function.replace("|", "\\|")
        samples = (str(cells[name].get(network, {}).get("samples", "")) for network in measured)
        lines.append(f"| {name} | `{shown}` | {' | '.join(samples)} |")
    recipes = [f"- {network}: {made_by(network)['recipe']}" for network in measured if network != IDEAL]
    return "\n".join([*lines, "", "Recipes, chosen on exploratory seeds (docs/decisions.md):", "", *recipes, ""])


if __name__ == "__main__":
    main()
