"""`genscope certify`: a PAC-Bayes certificate for a trained model whose weights are drawn anew for each use.

Source: lintilhac2026, Section 1.2.
Guarantee: that of `genscope.measure.certificate`; a certificate that says nothing new is called vacuous.
"""

import dataclasses
import math
import time
from typing import Annotated, Any

import typer

from genscope.cli._losses import HELP as LOSS_HELP
from genscope.cli._options import SEED, SEEDS, AsJson, DataFile, ModelName, check_options
from genscope.refusal import Refusal

ZERO = "zero"


def certify(
    model: ModelName,
    data: DataFile,
    prior: Annotated[
        str,
        typer.Option(
            "--prior", metavar="MODEL", help="The model before training on these data (its initialization), or zero."
        ),
    ] = ZERO,
    prior_deviation: Annotated[
        float | None,
        typer.Option(
            "--prior-deviation",
            metavar="X",
            help="Deviation of the prior's weights, chosen without these data. Default: tuned for each array.",
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="P", help="Confidence of the certificate.")
    ] = 0.95,
    clip: Annotated[float, typer.Option("--clip", metavar="B", help="Losses above B count as B.")] = 1.0,
    draws: Annotated[int, typer.Option("--draws", metavar="N", help="Networks drawn to measure the risk.")] = 1000,
    loss: Annotated[
        str,
        typer.Option("--loss", metavar="NAME", help=LOSS_HELP.format("error (of labels as for the two before); ")),
    ] = "squared",
    steps: Annotated[int, typer.Option("--steps", metavar="N", help="Steps of the search for good deviations.")] = 300,
    seed: Annotated[int, typer.Option("--seed", metavar="K", help="Seed of the search and of the draws.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Certify the risk of a trained model: a PAC-Bayes bound for weights drawn around the trained ones.

    The deviations of the weights are tuned to the bound; fresh draws then measure the risk on the data, and the
    divergence from the prior is added. The initialization is a much better prior than zero. Vacuous means no better
    than the best constant prediction.

    Example: genscope certify trained.safetensors --data train.npz --prior initial.safetensors
    """
    check_options(
        "certify",
        ("--seed", seed, 0 <= seed < SEEDS, SEED),
        ("--draws", draws, draws >= 1, "must be at least 1"),
        ("--steps", steps, steps >= 1, "must be at least 1"),
        ("--confidence", confidence, 0 < confidence < 1, "must be between 0 and 1"),
        ("--clip", clip, 0 < clip < math.inf, "must be a positive number"),
    )
    from genscope.cli._losses import find_loss
    from genscope.cli._model_data import load_data, load_model
    from genscope.cli._output import print_json

    arrays = load_data(data)
    from genscope.cli._jax import prepare_jax

    prepare_jax()
    start = time.perf_counter()
    bounded = find_loss(loss, slope=False)
    trained = _single(load_model(model))
    before = None if prior == ZERO else _prior(prior)
    facts = {"model": model, "data": str(data), "prior": prior, "loss": loss, "draws": draws}
    facts |= _certified(trained, before, arrays, bounded, clip, draws, confidence, steps, seed, prior_deviation)
    facts["seconds"] = time.perf_counter() - start
    print_json(facts) if as_json else _print_certificate(facts)


def _prior(text: str) -> Any:
    """The model of --prior, which a refusal names: the other one may be of the same class."""
    from genscope.cli._model_data import load_model

    try:
        return _single(load_model(text))
    except Refusal as error:
        raise Refusal(f"--prior {text}: {error}") from error


def _single(model: Any) -> Any:
    """The model in float32, the precision in which networks are drawn."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import numpy as np

    from genscope.models import TorchModel

    if isinstance(model, TorchModel) and model.program.number is np.float64:
        raise Refusal(
            f"certify got {model.program.name} in double precision: certificates are computed in single precision. "
            "Convert the module with module.float()."
        )
    return jax.tree.map(
        lambda leaf: jnp.asarray(np.asarray(leaf, np.float32)) if eqx.is_inexact_array(leaf) else leaf, model
    )


def _certified(
    model: Any,
    prior: Any,
    arrays: Any,
    loss: Any,
    clip: float,
    draws: int,
    confidence: float,
    steps: int,
    seed: int,
    prior_deviation: float | None,
) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp
    import jax.random as jr

    from genscope.cli._model_data import as_batch
    from genscope.cli._output import console
    from genscope.measure import certificate
    from genscope.models import outputs
    from genscope.random import stream

    say = console(stderr=True).print
    batch = jax.tree.map(jnp.asarray, as_batch(model, arrays, loss))  # draws take random examples
    key = jr.key(seed)
    common: dict[str, Any] = {"prior": prior, "clip": clip, "confidence": confidence, "predict": outputs}
    common["prior_deviation"] = prior_deviation
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # a model may mix types
        say(f"deviations of the weights, by {steps} steps on the bound")
        posterior = certificate.tuned_posterior(model, batch, loss, steps=steps, key=stream(key, "search"), **common)
        say(f"risk on {len(batch.y):,} examples, from {draws:,} draws")
        found = certificate.certify(posterior, batch, loss, draws=draws, key=stream(key, "draws"), **common)
    facts = dataclasses.asdict(found)
    return {
        "certificate": facts.pop("certificate"),
        "empirical_risk": facts.pop("empirical_risk"),
        "kl": facts.pop("divergence"),
        **facts,
        "examples": len(batch.y),
    }


def _clipped(facts: dict[str, Any]) -> str:
    classes = f"over {facts['classes']} classes, " if facts["classes"] else ""
    return f"{classes}clipped at {facts['clip']:g}, "


def _print_certificate(facts: dict[str, Any]) -> None:
    from genscope.cli._output import echo, print_table

    rows = [[name, f"{value:.6g}"] for name, value in facts["terms"].items()]
    if facts["certificate"] >= facts["clip"]:
        rows[-1][1] += ", all that is left below the clip"
    rows.append(["certificate", f"{facts['certificate']:.6g}"])
    print_table(f"Certificate for {facts['model']} on {facts['examples']:,} examples", ["term", "value"], rows)
    echo(
        f"With confidence {facts['confidence']:g} the {facts['loss']} risk, {_clipped(facts)}is at most "
        f"{facts['certificate']:.4g}, if:"
    )
    for assumption in facts["assumptions"]:
        echo(f"- {assumption}.")
    say = "Vacuous: the" if facts["vacuous"] else "Informative: the"
    echo(
        f"{say} best constant prediction has risk {facts['trivial']:.4g}. Divergence from the prior: {facts['kl']:.4g} "
        "nats."
    )
    if facts["vacuous"]:
        prior = "the initialization as --prior, " if facts["prior"] == ZERO else ""
        echo(f"What lowers it most: {prior}more examples, training on the bound (genscope.train.PacBayes).")
    echo(f"{facts['seconds']:.1f} s")
