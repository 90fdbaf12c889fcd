"""From norms and a sample size to the risk: validity on known truths, a second route, what clipping brings."""

import itertools
import json
import math

import jax.random as jr
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, norm

from genscope.bounds.end_to_end import erm_risk, recurrent_shape, rnn_erm_risk
from genscope.bounds.recurrent import rnn_cover
from genscope.bounds.token_limits import oracle_lower
from genscope.bounds.token_regression import token_regression_cover
from genscope.bounds.truncation import rnn_truncation_error, truncation_error
from genscope.constructions.recurrent_retrieval import recurrent_retrieval
from genscope.constructions.retrieval import verify_retrieval
from genscope.constructions.token_retrieval import sharpness, token_retrieval
from genscope.models.mousavi2025 import BidirectionalRNN
from genscope.tasks.token_regression import TokenRegression
from tests.cli.program import invoke

TASK = {"tokens": 16, "dimension": 10, "sparsity": 1, "width": 2, "encoding_dimension": 64}
NORMAL = {"label_moment": 2 / math.pi}  # of a standard normal: E|y| = sqrt(2 / pi) is the largest of all its moments


# --- What truncation leaves out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 3.0, 8.0, 40.0])
def test_moments_of_a_normal_are_those_assumed(order):
    moment = 2 ** (order / 2) * math.gamma((order + 1) / 2) / math.sqrt(math.pi)
    assert moment ** (1 / order) <= math.sqrt(NORMAL["label_moment"] * order) * (1 + 1e-12)


@pytest.mark.parametrize("truncation", [0.5, 4.0, 30.0, 60.0, 120.0])
def test_labels_alone_leave_out_no_more_than_the_lemma_says(truncation):
    """A network of norm 0 predicts 0: what is left out of the risk is E(y² − τ)₊, known in closed form."""
    root = math.sqrt(truncation)
    true = 2 * ((1 - truncation) * norm.sf(root) + root * norm.pdf(root))
    options = {"tokens": 3, "dimension": 2, "sparsity": 1, "heads": 1, "readout_norm": 0.0, "hidden_norm": 0.0}
    bound = truncation_error(truncation=truncation, **options, **NORMAL)
    assert bound.terms["predictions"] == 0
    assert true <= bound.terms["labels"]
    if truncation > 30:  # and not much more than the same with 1 / e in the exponent, which moments cost
        assert bound.value <= 40 * truncation * math.exp(-truncation / (2 * math.e * NORMAL["label_moment"]) * 0.9)
    recurrent = {"dimension": 2, "sparsity": 1, "output_depth": 3, "parameter_norm": 0.0, "state_radius": 1.0}
    assert true <= rnn_truncation_error(truncation=truncation, **recurrent, **NORMAL).value


@pytest.mark.parametrize("truncation", [20.0, 100.0, 400.0])
def test_a_network_of_largest_predictions_leaves_out_no_more(truncation):
    """One token, and a read-out that is as large as its norms allow on every prompt: ŷ² = 2d + 1 + |x|², y = 0."""
    d = 3
    beyond, _ = quad(lambda square: max(2 * d + 1 + square - truncation, 0) * chi2.pdf(square, d), 0, np.inf, limit=500)
    options = {"tokens": 1, "dimension": d, "sparsity": 1, "heads": 1, "readout_norm": 1.0, "hidden_norm": 1.0}
    bound = truncation_error(truncation=truncation, **options, label_moment=1e-12)
    assert beyond <= bound.value
    assert bound.value <= bound.trivial


def test_by_hand_at_a_large_truncation():
    heads, d, q, tokens, tau = 2, 5, 2, 30, 6000.0
    options = {"tokens": tokens, "dimension": d, "sparsity": q, "heads": heads, "readout_norm": 0.5, "hidden_norm": 2.0}
    bound = truncation_error(truncation=tau, **options, token_moment=1.5, label_moment=2.0, label_exponent=2.0)
    found = []
    for step in range(1, 32):
        share = step / 32
        length = (share**2 * tau - 1) / heads - d * (1 + 1 / q)
        first = heads * tokens * length * math.exp(-length / (2 * 1.5 * math.e * d)) / share
        level = (1 - share) ** 2 * tau
        order = math.sqrt(level / 2) / math.e
        if length > 4 * math.e * 1.5 * d and order > 2:
            found.append(first + level * math.exp(-order) / (1 - share))
    assert bound.value == pytest.approx(min(found), rel=1e-12)


def test_recurrent_predictions_are_within_their_bound():
    """Random output networks on random states: no squared prediction exceeds A + B |x|²."""
    generator = np.random.default_rng(3)
    d, q, depth, state = 4, 2, 3, 1.7
    for _ in range(200):
        sizes = [2 * d + d + 4, 6, 5, 1]
        layers = [generator.normal(size=(after, before + 1)) for before, after in itertools.pairwise(sizes)]
        layers = [layer * generator.uniform(0.1, 1) for layer in layers]
        layers[-1][:, -1] = 0
        norm_squared = sum(float(np.sum(layer**2)) for layer in layers)
        x, states, code = (generator.normal(size=size) for size in (d, 2 * d, 4))
        states *= math.sqrt(2) * state / np.linalg.norm(states)
        code *= math.sqrt(1 + q) / np.linalg.norm(code)
        value = np.concatenate([states, x, code])
        for layer in layers[:-1]:
            value = np.maximum(layer @ np.append(value, 1), 0)
        squared = float((layers[-1] @ np.append(value, 1))[0] ** 2)
        product = (norm_squared / depth) ** depth
        allowed = norm_squared + (norm_squared / 2) ** 2 + product * (2 + q + 2 * state**2 + x @ x)
        assert squared <= allowed
    large = 1e12
    options = {"dimension": d, "sparsity": q, "output_depth": 3, "parameter_norm": 2.0, "state_radius": state}
    bound = rnn_truncation_error(truncation=1e4, **options, label_moment=1 / large)
    squares = 4.0 + 4.0 + (4 / 3) ** 3 * (2 + q + 2 * state**2)
    level = ((31 / 32) ** 2 * 1e4 - squares) / (4 / 3) ** 3
    wanted = 32 / 31 * (4 / 3) ** 3 * level * math.exp(-level / (2 * math.e * d))
    assert bound.terms["predictions"] == pytest.approx(wanted, rel=1e-10)


# --- The whole way ----------------------------------------------------------------------------------------------------


def dudley_by_quadrature(cover, truncation, samples):
    """The least of 4α + 12/√n ∫ √log N, by adaptive quadrature and a search over α."""

    def whole(log_alpha):
        start, end = log_alpha, math.log(truncation)

        def integrand(x):
            return math.sqrt(cover(math.exp(x) / (2 * math.sqrt(truncation)))) * math.exp(x)

        return 4 * math.exp(log_alpha) + 12 / math.sqrt(samples) * quad(integrand, start, end, limit=200)[0]

    return min(whole(math.log(truncation) - step / 2) for step in range(1, 60))


def second_route(n, truncation, *, ball):
    """Theorems 3 and 10 at one truncation in plain floats, from the covers of the parts."""
    tokens, d, q, units, coded, gap = 16, 10, 1, 2, 64, 0.5
    radius = math.sqrt(2 * math.e * d * math.log(2 * n * tokens / 0.05))
    alpha = q / (gap * d) * math.log(2 * radius * tokens * math.sqrt(q * n))
    reach = math.sqrt(radius**2 + d * (1 + 1 / q))
    norms = {"readout_norm": 1 / math.sqrt(units), "hidden_norm": math.sqrt(units), "query_key_21": alpha * coded}
    points, product = {"points": n * tokens}, 1.0
    if ball:
        all_norm = math.sqrt(1 / units + units + q * alpha**2 * coded)
        norms, points = dict.fromkeys(norms, all_norm), {}
        product = all_norm**2 / 2
    shape = {"heads": q, "embedding": d + (q + 1) * coded, "width": units, "token_norm": reach}

    def cover(epsilon):
        return token_regression_cover(epsilon=epsilon, **shape, **norms, **points).value

    left = truncation_error(
        truncation=truncation, tokens=tokens, dimension=d, sparsity=q, heads=q, readout_norm=1.0, hidden_norm=product
    ).value
    return {
        "construction": 1 / n,
        "complexity": 2 * dudley_by_quadrature(cover, truncation, n),
        "confidence": 3 * truncation * math.sqrt(math.log(2 / 0.025) / (2 * n)),
        "truncation": left,
    }


@pytest.mark.parametrize("weights", ["norms", "ball"])
def test_by_a_second_route(weights):
    n = 10**14
    bound = erm_risk(samples=n, **TASK, weights=weights)
    wanted = second_route(n, bound.choices["truncation"], ball=weights == "ball")
    assert list(bound.terms) == list(wanted)
    for name, value in wanted.items():
        assert bound.terms[name] == pytest.approx(value, rel=0.02 if name == "complexity" else 1e-9)
    for factor in (0.3, 0.7, 1.5, 4.0):  # no truncation far from the chosen one is better
        other = second_route(n, factor * bound.choices["truncation"], ball=weights == "ball")
        assert sum(other.values()) >= 0.95 * bound.value


def test_golden_numbers():
    """Written down on the day the second route above agreed."""
    values = [
        erm_risk(samples=10**14, **TASK).value,
        erm_risk(samples=10**14, **TASK, weights="ball").value,
        erm_risk(samples=10**14, **TASK, weights="ball", clipped=True).value,
        rnn_erm_risk(samples=10**14, **TASK, clipped=True).value,
    ]
    assert values == pytest.approx(
        [1.6241261457504943, 521178.3827898864, 0.8268540101892383, 2.290888427233701], rel=1e-9
    )


def test_the_recurrent_bound_by_a_second_route():
    n, d, q, coded = 10**14, 10, 1, 64
    bound = rnn_erm_risk(samples=n, **TASK)
    tau, radius = bound.choices["truncation"], math.sqrt(2 * math.e * d * math.log(2 * n * 16 / 0.05))
    shape = recurrent_shape(q, d, coded, 2, 2 * radius, math.sqrt(2), 1 / math.sqrt(2))
    sizes = {"transition_parameters": shape.transition, "output_parameters": shape.output, "transition_depth": 3}
    rest = {"output_depth": 4, "parameter_norm": math.sqrt(shape.norm_squared), "state_radius": radius}
    case = {"tokens": 16, **sizes, **rest, "token_norm": math.sqrt(radius**2 + 2)}
    complexity = 2 * dudley_by_quadrature(lambda epsilon: rnn_cover(epsilon=epsilon, **case).value, tau, n)
    left = rnn_truncation_error(truncation=tau, dimension=d, sparsity=q, **rest).value
    assert bound.terms["complexity"] == pytest.approx(complexity, rel=0.02)
    assert bound.terms["truncation"] == pytest.approx(left, rel=1e-9)
    assert bound.choices["token_radius"] == pytest.approx(radius)


def test_the_recurrent_shape_is_that_of_the_construction():
    task = TokenRegression.draw(
        jr.key(0), context_length=6, dim=3, sparsity=2, encoding_dim=32, scale="none", shared_positions=True
    )
    built = recurrent_retrieval(task, token_range=5.0, gap=0.25)
    link = built.link
    outer, weight = (float(np.linalg.norm(part)) for part in (link.outer, np.append(link.weight, link.bias)))
    assert isinstance(built.model, BidirectionalRNN)
    shape = recurrent_shape(2, 3, 32, len(link.outer), 5.0 / 0.25, weight, outer)
    assert math.sqrt(shape.norm_squared) == pytest.approx(built.norms["all"], rel=1e-12)

    def weights(net):
        return sum(layer.weight.size for layer in net), sum(len(layer.weight) for layer in net[:-1])

    assert shape.transition == sum(weights(built.model.forward))
    assert shape.output == sum(weights(built.model.output))


def test_it_falls_with_the_sample_and_rises_with_what_makes_the_task_harder():
    values = [erm_risk(samples=10**power, **TASK).value for power in (1, 2, 3, 6, 9, 10, 12, 15, 18)]
    assert values == sorted(values, reverse=True)
    for bound in (erm_risk, rnn_erm_risk):
        base = bound(samples=10**14, **TASK, clipped=True).value
        for name in ("dimension", "sparsity", "encoding_dimension"):
            assert bound(samples=10**14, **TASK | {name: 2 * TASK[name]}, clipped=True).value > base
        for name in ("label_moment", "approximation"):
            assert bound(samples=10**14, **TASK, **{name: 2.0}, clipped=True).value > base
        assert bound(samples=10**16, **TASK, clipped=True).value < base


def test_tokens_cost_a_logarithm():
    few, many = (erm_risk(samples=10**14, **TASK | {"tokens": n}, clipped=True).value for n in (10, 10**6))
    assert few < many < 3 * few


def test_clipping_takes_the_size_of_predictions_out_of_the_rate():
    """Hundredfold weights of the link: a factor 10⁴ of C₁ without clipping, a logarithm with it."""
    ratios = []
    for clipped in (False, True):
        small, large = (
            erm_risk(samples=10**15, **TASK, hidden_scale=scale, clipped=clipped).value for scale in (1.0, 100.0)
        )
        ratios.append(large / small)
    assert ratios[0] > 5e3
    assert 1 < ratios[1] < 3


def test_the_command_line_says_what_was_chosen():
    options = [text for word, value in TASK.items() for text in (f"--{word.replace('_', '-')}", value)]
    result = invoke("bound", "erm-risk", *options, "--samples", 10**14, "--weights", "ball", "--clipped", "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    bound = erm_risk(samples=10**14, **TASK, weights="ball", clipped=True)
    assert facts["terms"] == dict(bound.terms)
    assert {name: facts[name] for name in ("truncation", "token_radius", "clip")} == dict(bound.choices)
    assert facts["source"] == "mousavi2025, Theorem 3"


@pytest.mark.parametrize("samples", [1, 3, 9])
def test_no_bound_is_below_what_no_learner_can_beat(samples):
    least = oracle_lower(samples=samples, sparsity=1, dimension=10).value
    assert least == pytest.approx(1 - samples / 10)
    for clipped in (False, True):
        assert erm_risk(samples=samples, **TASK, clipped=clipped).value >= least
        assert rnn_erm_risk(samples=samples, **TASK, clipped=clipped).value >= least


def test_the_construction_is_in_the_class_and_errs_by_no_more_than_its_term():
    """At the radius that the bound reports, the network of Lemma 11 has the norms and the error that the proof uses."""
    n, d, coded, tokens = 10**6, 4, 64, 8
    case = {"tokens": tokens, "dimension": d, "sparsity": 1, "width": 2, "encoding_dimension": coded}
    radius = erm_risk(samples=n, **case, readout_scale=2.0).choices["token_radius"]
    options = {"encoding_dim": coded, "max_correlation": 0.5, "scale": "sqrt_d_over_q"}
    task = TokenRegression.draw(jr.key(1), context_length=tokens, dim=d, **options)
    needed = sharpness(
        tokens=tokens, sparsity=1, scale=d, gap=0.5, lipschitz=2, token_norm=radius, error=1 / math.sqrt(n)
    )
    built = token_retrieval(task, token_norm=radius, alpha=needed)
    assert built.norms["a"] <= 2 / math.sqrt(2) * (1 + 1e-6)
    assert math.hypot(built.norms["W"], built.norms["b"]) <= math.sqrt(2) * (1 + 1e-6)
    assert built.norms["W_QK_21"] == pytest.approx(needed * coded)
    assert built.error**2 <= 1 / n
    assert verify_retrieval(built, prompts=20, key=jr.key(2)).kept
