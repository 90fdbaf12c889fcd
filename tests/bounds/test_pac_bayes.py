"""PAC-Bayes bounds as arithmetic: golden numbers, second formulas, corners, and what each variant calls itself."""

import json
import math
import random
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from genscope import bounds
from genscope.bounds._parameters import Number, parameters
from genscope.bounds.binary_kl import kl_inverse
from genscope.bounds.flat_minima import (
    BoundSetting,
    analytic,
    direct,
    domination,
    pac_bayes,
    semi_analytic,
    truncated,
    truncated_optimum,
)
from genscope.bounds.fourier_cover import fourier_cover
from genscope.bounds.loss_constant import clipped_constant, fitted_constant, one_sided_constant
from genscope.bounds.randomised import alquier, empirical, seeger
from tests.cli.program import invoke

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "lintilhac2026_bounds.toml").read_text())
CASE = {"norm_squared": 500.0, "trace": 600.0, "constant": 0.1, "samples": 10**7}


def test_the_optimum_of_the_truncated_bound():
    golden = GOLDEN["optimum"]
    best = truncated_optimum(**golden["arguments"])
    assert best.sigma == pytest.approx(golden["sigma"], abs=golden["tolerance"])
    assert best.value == pytest.approx(golden["value"], abs=golden["tolerance"])
    assert truncated_optimum(**golden["arguments"] | {"samples": math.ceil(best.samples)}).value <= 0.25
    assert truncated_optimum(**golden["arguments"] | {"samples": math.floor(best.samples) - 1}).value > 0.25
    printed = pac_bayes(**golden["arguments"])
    assert printed.value == pytest.approx(golden["value"], abs=golden["tolerance"])
    assert printed.choices["sigma"] == best.sigma


@pytest.mark.parametrize("golden", GOLDEN["tiling"], ids=lambda row: f"T={row['context_length']} n={row['samples']}")
def test_the_table_of_tilings(golden):
    for variant in ("paper", "tuned"):
        numbers = {name: golden[variant][name] for name in ("norm_squared", "trace")}
        value = pac_bayes(**numbers, constant=golden["constant"], samples=golden["samples"]).value
        assert value == pytest.approx(golden[variant]["value"], rel=2e-3)
    norms = tiling_norms(golden["context_length"], golden["degree"])
    assert fourier_cover(**norms, samples=golden["samples"]).value == pytest.approx(golden["covering"], rel=5e-3)


def tiling_norms(length, degree):
    """Norms of the paper's weights for a tiling, from their closed forms."""
    components, half = length // degree, degree // 2
    units, total = 4 * (half + 1), math.sqrt(components)
    sharpness = math.log((length + 1 - degree) * (8 * degree - 1) / degree)
    inactive = math.log((length + 1 - components) / (1e-6 * total))
    row = components * (math.log(components) / 2) ** 2 + (length + 1 - components) * inactive**2
    thresholds = (16 * half * (half + 1) * (2 * half + 1) / 6 + 1.25 * (half + 1)) / degree**2
    return {
        "query_key_21": components * sharpness * math.sqrt(degree),
        "value_21": 1.0,
        "value_spectral": 1.0,
        "expand_21": math.sqrt(units),
        "expand_spectral": math.sqrt(units),
        "contract_21": 2 * degree * math.sqrt(units),
        "contract_spectral": 2 * degree * math.sqrt(units),
        "threshold_norm": math.sqrt(thresholds),
        "select_21": math.sqrt(row),
        "readout_norm": total,
        "width": units,
        "tokens": length + 1,
        "dimension": length + 2,
    }


@pytest.mark.parametrize("golden", GOLDEN["draws"], ids=lambda row: f"m={row['draws']}")
def test_the_price_of_draws(golden):
    """A divergence of 0 and a huge sample leave the price of the draws; half of δ goes to them."""
    bound = empirical(drawn_risk=0.06, draws=golden["draws"], divergence=0.0, clip=1.0, samples=10**15, confidence=0.9)
    assert bound.value == pytest.approx(golden["value"], abs=6e-4)
    assert list(bound.terms) == ["empirical risk", "draws", "complexity"]


def test_alquier_by_hand_and_its_best_temperature():
    given = {"empirical_risk": 0.1, "divergence": 5.0, "constant": 0.5, "samples": 1000}
    bound = alquier(**given, temperature=50.0)
    tail = math.log(20)
    assert bound.terms == pytest.approx(
        {"empirical risk": 0.1, "fluctuation": 50 * 0.25 / 2000, "complexity": (5 + tail) / 50}
    )
    best = alquier(**given).value
    assert best == pytest.approx(0.1 + 0.5 * math.sqrt(2 * (5 + tail) / 1000))
    assert all(best <= alquier(**given, temperature=t).value + 1e-12 for t in (10, 50, 100, 200, 300, 1000))
    assert alquier(**given, priors=20).value == pytest.approx(0.1 + 0.5 * math.sqrt(2 * (5 + math.log(400)) / 1000))


def test_seeger_by_hand_below_its_relaxation_and_below_hoeffding():
    given = {"empirical_risk": 0.1, "divergence": 50.0, "clip": 2.0, "samples": 1000}
    psi = (50 + math.log(2 * math.sqrt(1000) / 0.05)) / 1000
    exact, relaxed = seeger(**given).value, seeger(**given, relaxed=True).value
    assert exact == pytest.approx(2 * kl_inverse(0.05, psi))
    assert relaxed == pytest.approx(0.1 + math.sqrt(2 * 2 * 0.1 * psi) + 4 * psi)
    assert exact < relaxed
    pinsker = 0.1 + 2 * math.sqrt(psi / 2)
    assert exact < pinsker
    assert seeger(**given | {"empirical_risk": 7.0}).value == 2.0  # what exceeds the clip counts as the clip
    assert seeger(**given | {"divergence": 1e9}).vacuous


def test_the_clipped_form_has_the_better_rate():
    """Constants and rates: 1.57 and 2.12 times √(B‖θ‖²H/n), where logarithms are negligible."""
    big = {"norm_squared": 1e9, "trace": 1e6, "constant": 0.5, "samples": 10**21}
    scale = math.sqrt(1.0 * 1e9 * 1e6 / 1e21)
    assert pac_bayes(**big, form="kl").value / scale == pytest.approx(1.57, rel=0.01)

    def relaxed(log_sigma):
        square = math.exp(2 * log_sigma)
        return seeger(
            empirical_risk=square * 5e5, divergence=5e8 / square, clip=1.0, samples=10**21, relaxed=True
        ).value

    best = minimize_scalar(relaxed, bounds=(-12, 0), method="bounded", options={"xatol": 1e-9})
    assert best.fun / scale == pytest.approx(3 / math.sqrt(2), rel=1e-3)
    assert math.exp(2 * best.x) == pytest.approx(math.sqrt(2 * 1.0 * 1e9 / (1e21 * 1e6)), rel=1e-2)
    for form, power in (("truncated", 1 / 3), ("kl", 1 / 2)):
        ratio = pac_bayes(**big, form=form).value / pac_bayes(**big | {"samples": 10**24}, form=form).value
        assert math.log(ratio) / math.log(1000) == pytest.approx(power, rel=1e-3)


@pytest.mark.parametrize("form", ["truncated", "kl"])
def test_the_grid_pays_for_its_choice_and_is_near_the_optimum(form):
    grid = pac_bayes(**CASE, form=form)
    sigma = grid.choices["sigma"]
    fixed = pac_bayes(**CASE, form=form, sigma=sigma)
    assert fixed.value < grid.value
    tail = "kl" if form == "kl" else "subgaussian"
    setting = BoundSetting(CASE["norm_squared"], CASE["constant"], CASE["samples"], priors=20, tail=tail)
    assert grid.value == truncated(setting, sigma=sigma, trace=CASE["trace"]).value
    finest = pac_bayes(**CASE, form=form, sigma_grid=100)
    assert grid.value <= 1.01 * finest.value
    assert pac_bayes(**CASE, form=form, sigma_grid=1).value == pytest.approx(grid.value, rel=0.1)


@pytest.mark.parametrize(("form", "worst"), [("truncated", math.inf), ("kl", 2 * CASE["constant"])])
def test_a_divergence_beyond_every_float_leaves_nothing_to_say(form, worst):
    """σ of 1e-200: the grids of 10,000 values reach there too, and pass it over."""
    bound = pac_bayes(**CASE, form=form, sigma=1e-200)
    assert (bound.value, bound.vacuous) == (worst, True)
    assert pac_bayes(**CASE, form=form, sigma_grid=10_000).choices == pac_bayes(**CASE, form=form).choices


sizes = st.floats(-6, 6).map(lambda power: 10.0**power)


@settings(max_examples=20)
@given(sizes, sizes, sizes, st.integers(8, 10**12), st.integers(8, 10**12), st.sampled_from(["truncated", "kl"]))
def test_more_samples_never_hurt(norm, trace, constant, samples, others, form):
    few, many = sorted([samples, others])
    given = {"norm_squared": norm, "trace": trace, "constant": constant, "form": form}
    assert pac_bayes(**given, samples=many).value <= pac_bayes(**given, samples=few).value * (1 + 1e-9)


def test_variants_differ_in_the_perturbed_risk_alone():
    setting, sigma = BoundSetting(500.0, 0.1, 10**7), 0.01
    plain = truncated(setting, sigma=sigma, trace=600.0)
    assert plain.value == pytest.approx(0.03 + 0.1 * math.sqrt((500 / 1e-4 + 2 * math.log(20)) / 1e7))
    measured = semi_analytic(setting, sigma=sigma, trace=600.0, perturbation=-60.0)
    assert measured.value == pytest.approx(plain.value - 0.003)
    assert direct(setting, sigma=sigma, perturbed_risk=0.027).value == pytest.approx(measured.value)
    proved = analytic(setting, sigma=sigma, trace=600.0, perturbation=6000.0)
    assert proved.value == pytest.approx(plain.value + 0.3)
    kinds = {bound.name: (bound.kind, bound.explicit) for bound in (plain, measured, proved)}
    assert kinds == {
        "truncated": ("estimate", False),
        "semi-analytic": ("semi-analytic", False),
        "analytic": ("analytic", False),
    }
    clipped = BoundSetting(500.0, 0.1, 10**7, tail="kl")
    assert analytic(clipped, sigma=sigma, trace=600.0, perturbation=1.0).explicit
    assert not truncated(clipped, sigma=sigma, trace=600.0).explicit
    assert truncated(clipped, sigma=1.0, trace=600.0).terms["clip"] == 0.2


def test_domination_is_reported():
    report = domination(norm_squared=800.0, sharpness=300.0, built_norm_squared=400.0, built_sharpness=600.0)
    assert (report.norm_ratio, report.sharpness_ratio, report.holds) == (2.0, 0.5, False)
    assert domination(norm_squared=4.0, sharpness=3.0, built_norm_squared=4.0, built_sharpness=3.0).holds


def test_the_constant_three_ways():
    assert clipped_constant(1.0) == 0.5
    assert one_sided_constant(0.25) == 0.5
    rng = random.Random(0)
    gaussian = [rng.gauss(3.0, 0.2) for _ in range(4000)]
    assert fitted_constant(gaussian) == pytest.approx(0.2, rel=0.15)
    assert fitted_constant([0.4] * 5) == 0
    with pytest.raises(ValueError, match="fresh examples"):
        fitted_constant([0.1, math.nan])


@pytest.mark.parametrize("ones", [1, 10, 1000, 4000, 9999])
def test_the_fitted_constant_of_a_coin(ones):
    r"""Kearns and Saul: $C^2=\frac{1-2p}{2\log((1-p)/p)}$, also where the best t is far from the grid's ends."""
    p = ones / 10_000
    expected = math.sqrt((1 - 2 * p) / (2 * math.log((1 - p) / p)))
    coins = [1.0] * ones + [0.0] * (10_000 - ones)
    assert fitted_constant(coins) == pytest.approx(expected, rel=1e-4)
    assert fitted_constant([0.002 * coin - 7 for coin in coins]) == pytest.approx(0.002 * expected, rel=1e-4)


@pytest.mark.parametrize(("scale", "constant"), [(0.005, 0.01864), (0.002, 0.00746), (0.001, 0.00373)])
def test_the_fitted_constant_of_squares(scale, constant):
    """Losses of a well-trained network: a z², z normal; and all t at once by a second route."""
    squares = np.random.default_rng(0).normal(size=2000) ** 2
    assert fitted_constant((scale * squares).tolist()) == pytest.approx(constant, abs=5e-6)
    t = np.geomspace(0.1, 10, 1000)
    exponents = np.outer(np.r_[t, -t], squares - squares.mean())
    best = np.max(2 * (logsumexp(exponents, axis=1) - math.log(2000)) / np.r_[t, -t] ** 2)
    assert constant == pytest.approx(scale * math.sqrt(best), rel=1e-3)


@given(st.floats(-290, 290), st.integers(0, 99))
def test_the_fitted_constant_is_equivariant(power, number):
    chosen = random.Random(number)
    losses = [chosen.gauss(0, 1) ** 2 for _ in range(50)]
    assert fitted_constant([10**power * loss for loss in losses]) == pytest.approx(
        10**power * fitted_constant(losses), rel=1e-12, abs=0
    )
    assert fitted_constant([-loss for loss in losses]) == pytest.approx(fitted_constant(losses), rel=1e-12)


@pytest.mark.parametrize("form", ["truncated", "kl"])
def test_corners_give_a_number(form):
    known = {word: each.about for word, each in parameters(pac_bayes).items() if isinstance(each.about, Number)}
    extremes = {False: [0.0, 1e-300, 1e-3, 1e3, 1e300], True: [1, 8, 10**15, 10**100, 10**400]}
    choose, tried = random.Random(form), 0
    for _ in range(60):
        moved = choose.sample(list(known), choose.choice([1, 2, 3, len(known)]))
        given = CASE | {word: choose.choice(extremes[known[word].whole]) for word in moved}
        try:
            bound = pac_bayes(**given, form=form)
        except ValueError as refusal:
            assert " got " in str(refusal)  # noqa: PT017
            continue
        tried += 1
        assert bound.value >= 0, given
        assert not any(math.isnan(term) for term in bound.terms.values()), given
    assert tried > 10


def test_nothing_to_pay_for():
    flat = pac_bayes(**CASE | {"trace": 0.0, "norm_squared": 0.0})
    assert flat.value == pytest.approx(0.1 * math.sqrt(2 * math.log(400) / 1e7))
    assert math.isfinite(flat.choices["sigma"])


def test_what_the_command_prints():
    words = ["--norm-squared", 4898.79, "--trace", 1990.73, "--constant", 0.1, "--samples", 1_000_000]
    facts = json.loads(invoke("bound", "pac-bayes", *words, "--json").stdout)
    assert list(facts) == ["name", "value", "kind", "explicit", "terms", "vacuous", "source", "sigma"]
    assert facts["value"] == pytest.approx(0.6904, abs=5e-5)
    assert facts["sigma"] == pytest.approx(0.0152, abs=5e-5)
    assert facts["vacuous"] is True


def test_the_registry():
    assert bounds.ALL["pac-bayes"] is pac_bayes
    assert bounds.ALL["fourier-cover"] is fourier_cover
