"""`genscope checkpoint`: norms of a real model's heads, and the capacity that they imply.

Source: edelman2022, Section 4.
Guarantee: that of `genscope.checkpoints`; the file is only read, and nothing is fetched.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from genscope.cli._options import AsJson
from genscope.extras import need
from genscope.files import draft, picture_kind

_EVERY_SECONDS = 10.0
_WORKERS = 2
_CONTEXT_LENGTH = 1024  # for models that do not tell
_MAPS = {"value": "value", "query_key": "query-key"}
_NORMS = {"spectral": "spectral", "frobenius": "Frobenius", "two_one": "(2,1)"}


def checkpoint(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="model.safetensors, the .index.json of its shards, or their directory."),
    ],
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Sizes of the model. Default: config.json next to it."),
    ] = None,
    heads: Annotated[
        int | None, typer.Option("--heads", metavar="N", help="Query heads per layer, overriding the config.")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", metavar="N", help="Training examples.")] = 1_000_000,
    context_length: Annotated[
        int | None,
        typer.Option("--context-length", metavar="N", help="Tokens per example. Default: the model's own."),
    ] = None,
    epsilon: Annotated[
        float, typer.Option("--epsilon", metavar="X", help="Accuracy of the cover: half the margin of the read-out.")
    ] = 0.5,
    input_norm: Annotated[
        float | None,
        typer.Option(
            "--input-norm",
            metavar="X",
            help="Largest norm of a token that enters a layer. Default: from its layer norm.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the norms as heat maps: .svg, .png or .pdf.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the attention heads of a model in safetensors files, and bound their capacity.

    Knows BERT, RoBERTa, GPT-2, nanoGPT, LLaMA, Mistral, Qwen, Gemma, Phi, timm's ViT, PyTorch's encoder, GPT-NeoX and
    genscope's own model files. A model that only has the names of these gets norms and no bounds.

    Example: genscope checkpoint model.safetensors --samples 100000 --context-length 128
    """
    from genscope.checkpoints import CapacityQuestion, bound_capacity, open_model
    from genscope.cli._output import print_json

    if plot is not None:
        need("report", given=f"checkpoint got --plot {plot}")
        picture_kind(plot)  # before minutes are spent on what it would show
    model = open_model(file, config=config, heads=heads)
    length = context_length if context_length is not None else model.context_length() or _CONTEXT_LENGTH
    setting = CapacityQuestion(samples, length, epsilon, input_norm)
    norms = _measured(model)
    facts = {
        "file": str(file),
        "architecture": model.layout.architecture,
        "model_type": model.stack.config.get("model_type"),
        "prefix": model.stack.prefix,
        "dimension": model.heads(0).query.shape[1],
        "layers": [{"layer": number, "heads": _heads(layer)} for number, layer in enumerate(norms)],
        "embedding_norms": model.embedding_norms(),
        "bounds": bound_capacity(model, norms, setting),
        "left_out": list(model.left_out()),
    }
    if plot is not None:
        from genscope.checkpoints.picture import draw_norms

        figure = draw_norms(norms, title=f"{model.layout.architecture}: norms of the attention heads")
        with draft(plot) as beside:
            figure.savefig(beside, format=picture_kind(plot))
    named = facts["model_type"] and model.kind  # a name from elsewhere may hold anything
    print_json(facts) if as_json else _print_norms(facts, f" ({facts['model_type']})" if named else "")


def _measured(model: Any) -> list[Any]:
    """Norms of every layer, two layers at a time; those who wait long get a line now and then on standard error."""
    from genscope.checkpoints import layer_norms
    from genscope.cli._output import console

    found = []
    start = last = time.monotonic()
    with ThreadPoolExecutor(_WORKERS) as workers:
        try:
            for norms in workers.map(lambda i: layer_norms(model.heads(i), f"layer {i}"), range(model.layers)):
                found.append(norms)
                now = time.monotonic()
                if now >= last + _EVERY_SECONDS:
                    each = (now - start) / len(found)
                    progress = f"{len(found)} of {model.layers} layers, {each:.1f} s/layer"
                    left = f"{each * (model.layers - len(found)):.0f} s left"
                    console(stderr=True).print(f"{progress}, {left}")
                    last = now
        except BaseException:
            workers.shutdown(cancel_futures=True)
            raise
    return found


def _heads(layer: Any) -> list[dict[str, Any]]:
    maps = {name: norms._asdict() for name, norms in layer._asdict().items()}
    return [
        {"head": head}
        | {name: {norm: float(values[head]) for norm, values in norms.items()} for name, norms in maps.items()}
        for head in range(len(layer.value.spectral))
    ]


def _print_norms(facts: dict[str, Any], kind: str) -> None:
    from genscope.cli._output import counted, echo, print_table

    layers = facts["layers"]
    print_table(
        f"{facts['architecture']}{kind}, {counted(len(layers), 'layer')} of "
        f"{counted(len(layers[0]['heads']), 'head')} on tokens of "
        f"dimension {facts['dimension']}: norms, mean (largest) over the heads",
        ["layer", *(f"{label} {norm}" for label in _MAPS.values() for norm in _NORMS.values())],
        [
            [str(row["layer"]), *(_spread([h[name][norm] for h in row["heads"]]) for name in _MAPS for norm in _NORMS)]
            for row in layers
        ],
    )
    echo(
        "Tokens are rows: W_V is d x k, query-key is W_Q W_K^T without the model's factor on its scores, and (2,1) is "
        "the sum of the norms of the columns.\n"
    )
    for label, norm in facts["embedding_norms"].items():
        echo(f"Longest row of the {label} embeddings: {_number(norm)}")
    if withheld := facts["bounds"]["withheld"]:
        _print_list("No bounds are given:", withheld)
        _print_list("The theorem leaves out:", facts["left_out"])
    else:
        _print_bounds(facts["bounds"])
        _print_list("The theorem leaves out, and so do these bounds:", facts["left_out"])


def _print_list(heading: str, parts: list[str]) -> None:
    from genscope.cli._output import echo

    echo(heading)
    for part in parts:
        echo(f"- {part}")


def _print_bounds(bounds: dict[str, Any]) -> None:
    from genscope.cli._output import echo, print_table
    from genscope.report import words

    print_table(
        f"Capacity of each layer's heads on {bounds['samples']:,} samples of {bounds['context_length']:,} tokens, at "
        f"accuracy {bounds['epsilon']:g}",
        ["layer", "longest token", "factor on scores", "log covering number", "excess error"],
        [
            [
                str(row["layer"]),
                *(_number(row[name]) for name in ("input_norm", "score_scale")),
                words.number(row["log_cover"]),
                _excess(row),
            ]
            for row in bounds["layers"]
        ],
    )
    if largest := bounds["largest"]:
        print_table(
            f"Layer {largest['layer']}, the largest, with more samples",
            ["samples", "log covering number", "excess error"],
            [
                [words.number(row["samples"]), words.number(row["log_cover"]), _excess(row)]
                for row in largest["by_samples"]
            ],
        )
        print_table(
            "and with longer contexts",
            ["context length", f"samples for an excess error of {bounds['target']:g}"],
            [[f"{row['context_length']:,}", words.number(row["sample_size"])] for row in largest["by_context_length"]],
        )
    if any(row["input_norm"] is None for row in bounds["layers"]):
        echo("The weights do not say how long the tokens of every layer are: set it with --input-norm.")
    echo(
        "All constants are explicit. The excess error is that of the sign of a fixed unit read-out of the layer, over "
        f"its share of training examples within a margin above {2 * bounds['epsilon']:g}, with confidence "
        f"{bounds['confidence']:g} and as if the norms had been fixed before training."
    )


def _excess(row: dict[str, Any]) -> str:
    return _number(row["excess_error"]) + (" (vacuous)" if row["vacuous"] else "")


def _spread(values: list[float]) -> str:
    return f"{_number(sum(values) / len(values))} ({_number(max(values))})"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
