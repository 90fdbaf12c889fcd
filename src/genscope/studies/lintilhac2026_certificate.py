"""A certificate that says something: how tight PAC-Bayes gets for trained Transformers, by function and sample size.

Source: lintilhac2026, Section 1.2 (the bound), Definition 1 (the learner) and Section 2.1 (functions and network).
Departures: the paper reports bounds for constructions, under an assumption; these are certificates for trained networks
with randomly drawn weights. Larger samples than the paper's, one deviation per weight, a narrower network ("small").
Learners: "plain" finds deviations for the weights of plain training, "noisy" goes on to train on the bound, and both
have their prior at the initialization. "split" has it at the network trained on the first part of the sample, and is
certified on the rest.
Guarantee: that of `measure.certificate`, per trial at confidence 0.95; a network that did not learn is a result.
"""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Key

from genscope.estimate import Estimate
from genscope.lab import Plan, Study, grid
from genscope.lab.plans.figure import Level, Line, Mean
from genscope.lab.plans.study import Point, within
from genscope.measure.certificate import certify, drawn_risks
from genscope.models.bit_transformer import BitTransformer
from genscope.random import stream
from genscope.refusal import Refusal
from genscope.studies._walsh_training import descend
from genscope.tasks import Batch, WalshSum
from genscope.train import Draws, GaussianPosterior, PacBayes, adam, cosine, fit, squared

NETWORKS: dict[str, dict[str, Any]] = {
    "small": {"embedding": 8, "hidden": 32},
    "paper": {"embedding": 30, "hidden": 128},
}
LEARNERS = ("plain", "noisy", "split")
CLIP = 1.0
FIRST, EPOCHS = 8192, 40  # plain training comes first, on a part of the sample
START = 0.01  # deviation of all weights after it


def trial(
    key: Key[Array, ""],
    *,
    learner: str,
    network: str,
    context_length: int,
    degree: int,
    sparsity: int,
    sample_size: int,
    steps: int,
) -> dict[str, Any]:
    """Train, certify, and measure the randomized predictor on fresh inputs."""
    task = WalshSum.draw(stream(key, "task"), context_length=context_length, degree=degree, sparsity=sparsity)
    sample = task.sample(stream(key, "sample"), sample_size)
    start = BitTransformer(context_length, **NETWORKS[network], key=stream(key, "init"))
    part = Batch(sample.x[:FIRST], sample.y[:FIRST])
    first = descend(start, part, key=stream(key, "order"), epochs=EPOCHS, weight_decay=0.0)
    prior, rest = start, sample
    if learner == "split":
        prior, rest = first.model, Batch(sample.x[FIRST:], sample.y[FIRST:])
    found = fit(
        GaussianPosterior.around(first.model, START, by_weight=True),
        Draws(rest, stream(key, "noise"), 256),
        PacBayes(squared, prior=prior, sample_size=len(rest.x), clip=CLIP, predict=BitTransformer.outputs),
        until=steps,
        optimizer=adam(GaussianPosterior(1e-3, 1e-2), schedule=cosine(steps)),
        every=steps,
        trainable=GaussianPosterior(learner != "plain" and eqx.is_inexact_array, True),
    )
    posterior = found.model
    facts = {
        "reached": first.converged,
        "epochs": first.epochs,
        "first_loss": first.error,
        "diverged": found.diverged,
    }
    if found.diverged:
        names = ("certificate", "empirical_risk", "divergence", "trivial", "vacuous", "risk", "risk_sem")
        return facts | dict.fromkeys(names)
    options: dict[str, Any] = {"clip": CLIP, "predict": BitTransformer.outputs}
    certified = certify(posterior, rest, squared, prior=prior, key=stream(key, "draws"), **options)
    fresh = task.sample(stream(key, "test"), FIRST)
    risks = drawn_risks(posterior, fresh, squared, key=stream(key, "test draws"), **options)
    risk = Estimate.of(risks)
    return facts | {
        "certificate": certified.certificate,
        "empirical_risk": certified.empirical_risk,
        "divergence": certified.divergence,
        "trivial": certified.trivial,
        "vacuous": certified.vacuous,
        "risk": risk.mean,
        "risk_sem": risk.sem,
    }


def _check(point: Point) -> None:
    within(context_length=(1, 64), degree=(1, None), sparsity=(1, None), sample_size=(2 * FIRST, 10**7))(point)
    within(steps=(1, 10**6))(point)
    for axis, known in (("learner", LEARNERS), ("network", tuple(NETWORKS))):
        if axis in point and point[axis] not in known:
            raise Refusal(f"{axis} must be one of {', '.join(known)}. Choose one of them.")


_COMMON = {"context_length": [20], "sparsity": [2]}


def _points(sizes: list[int], degrees: list[int], network: str, steps: int) -> tuple[Point, ...]:
    return grid(learner=LEARNERS, network=[network], **_COMMON, degree=degrees, sample_size=sizes, steps=[steps])


_ALL = [16_384, 32_768, 65_536, 131_072]
STUDY = Study(
    name="lintilhac2026-certificate",
    title="PAC-Bayes certificates for trained Transformers",
    source="lintilhac2026, Section 1.2",
    trial=trial,
    trial_cost=12.0,
    points=[*_points(_ALL, [2], "small", 1000), *_points([_ALL[-1]], [1, 3], "small", 1000)],
    seeds=4,
    budgets={
        "quick": Plan(
            grid(learner=["noisy"], network=["small"], **_COMMON, degree=[1], sample_size=[65_536], steps=[400])
        ),
        "paper": Plan(
            [*_points([*_ALL, 524_288], [1, 2, 3], "small", 4000), *_points(_ALL, [1, 2], "paper", 4000)], seeds=5
        ),
    },
    figures=(
        Line(
            title="Certified risk of trained networks",
            caption=(
                "Certificate at confidence 0.95 for the squared loss clipped at 1, of the randomized network of about "
                "10,000 weights, against the sample size; functions of degree 2 with two components on 20 bits. "
                "Learners: plain training with deviations fitted afterwards (plain), training on the bound (noisy), "
                "and a prior trained on the first 8,192 examples (split)."
            ),
            labels={"sample_size": "samples n", "certificate": "certified risk"},
            where={"degree": 2, "network": "small"},
            x="sample_size",
            y=Mean("certificate"),
            by="learner",
            vacuous="vacuous",
            log_x=True,
            log_y=True,
            trivial=Level(0.5, "best constant, about"),
        ),
        Line(
            title="Certified risk by degree",
            caption=(
                "The same for functions of degree 1 to 3 and 131,072 examples: the harder a function, the further its "
                "weights lie from the initialization, and the larger the divergence in the certificate."
            ),
            labels={"degree": "degree k", "certificate": "certified risk"},
            where={"sample_size": _ALL[-1], "network": "small"},
            x="degree",
            y=Mean("certificate"),
            by="learner",
            vacuous="vacuous",
            log_y=True,
            trivial=Level(0.5, "best constant, about"),
        ),
        Line(
            title="What the certificate is about",
            caption="Risk of the same randomized networks on fresh inputs, to compare with the certificate.",
            labels={"sample_size": "samples n", "risk": "risk on fresh inputs"},
            where={"degree": 2, "network": "small"},
            x="sample_size",
            y=Mean("risk"),
            by="learner",
            log_x=True,
            log_y=True,
        ),
    ),
    paired=frozenset({"learner", "network", "steps"}),
    batch=1,
    check=_check,
)
