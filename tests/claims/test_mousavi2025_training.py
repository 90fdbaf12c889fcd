"""Each rule on made-up readings: it can hold, fail and stay undecided; intervals against brute force."""

import math

import numpy as np
import polars as pl
import pytest

from genscope.claims._ratios import SampleCounts, decide, difference, exponent, own_contrast, trend
from genscope.claims.mousavi2025_table import B11
from genscope.claims.mousavi2025_training import B5, B6, B7, B8, heads_parts
from genscope.lab.results.reading import Reading
from genscope.studies import mousavi2025_block
from tests.chance import assert_count

NOTHING = Reading(pl.DataFrame({"status": []}), (), 0)


def reading(rows):
    base = {"status": "ok", "protocol": "code", "run": 0, "samples": 1, "reached": True, "index_share_relative": 0.5}
    return Reading(pl.DataFrame([base | row for row in rows]), (), 0)


def verdict(claim, *reads):
    return claim.verdict(reads, budget="paper", seconds=0.0).verdict


def decisions(claim, *reads):
    return [part.decision for part in claim.decide(reads)]


def runs(law, points, count=3, spread=0.03, **axes):
    """Runs whose logarithms scatter around a law, in a fixed pattern."""
    pattern = np.linspace(-1, 1, count) if count > 1 else [0.0]
    return [
        {**axes, **point, "draw": draw}
        | {"samples_relative": round(law(point) * math.exp(spread * wiggle)), "reached_relative": True}
        for point in points
        for draw, wiggle in enumerate(pattern)
    ]


def at(*lengths):
    return [{"context_length": n} for n in lengths]


def powers(lengths=(8, 12, 16), count=5, scale=2000, **exponents):
    return [
        row
        for name, power in exponents.items()
        for row in runs(
            lambda p, e=power: scale * p["context_length"] ** e, at(*lengths), architecture=name, count=count
        )
    ]


def one_str(transformer=0.4, ffn=2.0, gru=1.5):
    """The Transformer to N = 48, with the rivals to 16."""
    return [*powers((8, 12, 16, 24, 48), transformer=transformer), *powers(ffn=ffn, gru=gru, scale=1000)]


def test_b5_needs_a_transformer_that_hardly_grows_and_rivals_that_do():
    assert verdict(B5, reading(one_str())) == "holds"
    assert decisions(B5, reading(one_str(transformer=0.9))) == ["fails", *["holds"] * 4]
    assert decisions(B5, reading(one_str(gru=0.2)))[2] == "fails"
    assert decisions(B5, reading(one_str(ffn=0.2)))[1::2] == ["fails", "fails"]
    assert verdict(B5, NOTHING) == "undecided"


def test_b5_wants_long_contexts_and_five_draws_of_the_transformer():
    short = [*powers(transformer=0.4), *powers(ffn=2.0, gru=1.5)]
    assert decisions(B5, reading(short))[0] == "undecided"
    few = [row for row in one_str() if row["draw"] < 4]
    assert decisions(B5, reading(few)) == ["undecided", *["holds"] * 4]
    near = [*powers((8, 12, 16, 24, 48), transformer=0.59, count=5), *powers(ffn=2.0, gru=1.5)]
    assert decisions(B5, reading(near))[0] == "undecided"


def test_b5_leaves_lengths_out_at_which_a_run_did_not_arrive():
    rows = one_str()
    late = next(row for row in rows if (row["architecture"], row["context_length"]) == ("gru", 16))
    late["reached_relative"] = False
    parts = B5.decide([reading(rows)])
    assert parts[2].numbers["N for gru"] == [8, 12]
    assert parts[1].numbers["N for ffn"] == [8, 12, 16]
    lost = next(row for row in rows if (row["architecture"], row["context_length"]) == ("transformer", 48))
    lost["reached_relative"] = False
    assert decisions(B5, reading(rows))[0] == "undecided"


def test_b5_leaves_dependent_runs_short_lengths_and_other_protocols_out():
    others = [{"run": 1}, {"protocol": "text"}, {"protocol": "theory"}, {"context_length": 4}]
    extra = [{**row, "samples_relative": 10, **other} for row in one_str() for other in others]
    assert verdict(B5, reading([*one_str(), *extra])) == "holds"


def test_b5_shows_the_published_threshold_beside():
    rows = [{**row, "samples": 86_000} for row in one_str()]
    found = {name: value for part in B5.decide([reading(rows)]) for name, value in part.numbers.items()}
    assert found["transformer over published at 0.7, N = 12"] == pytest.approx(5)
    assert found["least share of the index, ffn"] == 0.5


def simple(gru=1.1, rnn=1.2, ffn=2.0, **options):
    """The law of the Transformer is flat; rivals are so many times it at N = 32, growing from a common start."""
    laws = {"transformer": 1.0, "gru": gru, "rnn": rnn, "ffn": ffn}
    return [
        row
        for name, factor in laws.items()
        for row in runs(
            lambda p, r=factor: 5e4 * r ** (math.log(p["context_length"] / 8) / math.log(4)),
            at(8, 16, 32),
            architecture=name,
            **options,
        )
    ]


def test_b6_compares_ratios_and_exponents():
    assert verdict(B6, reading(simple())) == "holds"
    assert decisions(B6, reading(simple(gru=4.0))) == ["fails", "holds", "holds", "fails", "holds"]
    assert decisions(B6, reading(simple(rnn=4.0)))[1] == "fails"
    assert decisions(B6, reading(simple(ffn=1.02, gru=1.3)))[2:4] == ["fails", "fails"]
    assert verdict(B6, reading(simple(spread=1.0))) == "undecided"
    assert verdict(B6, NOTHING) == "undecided"


def test_b6_takes_the_spread_of_each_network_from_itself():
    rows = [row for row in simple() if row["architecture"] != "ffn"]
    rows += runs(lambda p: 1e6, at(32), architecture="ffn", spread=1.5)
    near, *_, far = decisions(B6, reading(rows))[:3]
    assert (near, far) == ("holds", "undecided")
    alone = [row for row in simple() if row["architecture"] != "gru" or row["draw"] == 0]
    assert decisions(B6, reading(alone))[0] == "undecided"


def test_b6_censored_runs():
    rows = simple()
    for row in rows:
        row["reached_relative"] = row["architecture"] != "ffn"  # the FFN never arrived: all the better for the ratio
    assert decisions(B6, reading(rows))[2:] == ["holds", "undecided", "undecided"]
    for row in rows:
        row["reached_relative"] = row["architecture"] != "gru"
    assert decisions(B6, reading(rows))[0] == "undecided"


def table(one, other):
    return [reading([*powers((8, 16, 32), **exponents)]) for exponents in (one, other)]


AS_PRINTED = ({"ffn": 1.5, "gru": 1.2, "transformer": 0.3}, {"ffn": 1.3, "gru": 0.2, "transformer": 0.1})


def test_b11_has_six_cells_each_of_which_can_hold_and_fail():
    assert decisions(B11, *table(*AS_PRINTED)) == ["holds"] * 6
    for row, cell, wrong in ((0, "ffn", 0.8), (0, "gru", 0.3), (0, "transformer", 0.9), (1, "gru", 0.9)):
        changed = [{**exponents, cell: wrong} if n == row else exponents for n, exponents in enumerate(AS_PRINTED)]
        found = decisions(B11, *table(*changed))
        assert found.count("fails") == 1
        assert found[3 * row + ["ffn", "gru", "transformer"].index(cell)] == "fails"


def test_b11_is_undecided_near_its_limits_and_without_three_lengths():
    assert decisions(B11, *table({**AS_PRINTED[0], "ffn": 1.0, "gru": 0.6}, AS_PRINTED[1]))[:2] == ["undecided"] * 2
    two = [reading(powers((8, 16), **exponents)) for exponents in AS_PRINTED]
    assert decisions(B11, *two) == ["undecided"] * 6
    assert verdict(B11, NOTHING, NOTHING) == "undecided"
    assert "(Theorem 7)" in B11.decide(table(*AS_PRINTED))[1].statement


def block(share, identity, settled=True, protocols=("code", "text"), steps=781):
    shares = {"block_share": share, "identity_share": identity, "settled": settled, "steps_taken": steps}
    return reading([{**shares, "protocol": name} for name in protocols for _ in range(2)])


def test_b7_is_a_check_of_every_run_whose_training_is_over():
    assert verdict(B7, block(0.95, 0.8)) == "holds"
    assert decisions(B7, block(0.17, 0.8)) == ["fails", "holds"] * 2
    assert decisions(B7, block(0.95, 0.6)) == ["holds", "fails"] * 2
    assert verdict(B7, block(0.95, 0.6, settled=False)) == "undecided"
    assert verdict(B7, block(0.95, 0.6, settled=False, steps=mousavi2025_block.MOST)) == "fails"
    assert decisions(B7, block(0.95, 0.8, protocols=["code"])) == ["holds", "holds", "undecided", "undecided"]
    assert verdict(B7, NOTHING) == "undecided"


def sparsity(ratios, spread=0.03, hardness=(1.0, 1.0, 1.0), rival="ffn"):
    """Three draws of links and encodings, each so much harder for both networks, whose ratio scatters too."""
    return [
        {**row, "samples_relative": row["samples_relative"] * hardness[row["draw"]]}
        for q, ratio in ratios.items()
        for name, factor, wiggle in (("transformer", 1.0, spread), (rival, ratio, -spread))
        for row in runs(lambda p, r=factor: 1e5 * r, [{"sparsity": q}], architecture=name, spread=wiggle)
    ]


def test_b8_reads_the_gap_as_ratio_and_as_difference():
    assert verdict(B8, reading(sparsity({2: 1.5, 3: 2.0, 4: 3.0, 5: 4.0}))) == "holds"
    assert verdict(B8, reading(sparsity({2: 3.0, 4: 1.5}))) == "fails"
    assert verdict(B8, reading(sparsity({2: 1.5, 4: 1.55}))) == "undecided"
    assert verdict(B8, reading(sparsity({2: 1.5, 4: 3.0}, spread=1.0))) == "undecided"
    assert verdict(B8, reading(sparsity({2: 1.5}))) == "undecided"
    assert verdict(B8, NOTHING) == "undecided"


def test_b8_may_have_a_growing_difference_of_equal_ratios():
    rows = sparsity({2: 2.0, 4: 1.8}, spread=0.005)
    for row in rows:
        row["samples_relative"] *= row["sparsity"]
    assert decisions(B8, reading(rows)) == ["fails", "holds"]


def test_b8_compares_networks_draw_by_draw_and_minds_what_ended_early():
    hard = sparsity({2: 1.5, 4: 3.0}, hardness=(1.0, 5.0, 25.0))
    assert decisions(B8, reading(hard))[0] == "holds"
    cases = {("ffn", 4): "holds", ("ffn", 2): "undecided", ("transformer", 4): "undecided", ("transformer", 2): "holds"}
    for early, expected in cases.items():
        rows = sparsity({2: 1.5, 4: 3.0})
        for row in rows:
            row["reached_relative"] = (row["architecture"], row["sparsity"]) != early
        assert verdict(B8, reading(rows)) == expected


def test_b8_has_parts_for_the_rnn_where_it_was_run_to_the_relative_threshold():
    rows = sparsity({2: 1.5, 3: 3.0})
    rnn = [row for row in sparsity({2: 3.0, 3: 1.5}, rival="rnn") if row["architecture"] == "rnn"]
    assert verdict(B8, reading([*rows, *rnn])) == "fails"
    assert (
        len(
            B8.decide(
                [reading([{**row, "until": "both"} for row in rows] + [{**row, "until": "published"} for row in rnn])]
            )
        )
        == 2
    )


def heads(few, enough, sem=0.005):
    rows = [(1, few, 0.5), (2, enough, 0.0)]
    return reading(
        [
            {"family": "positional", "sparsity": 2, "heads": h, "risk": risk, "risk_sem": sem, "bound": bound}
            for h, risk, bound in rows
        ]
    )


def test_heads_by_training():
    def decisions(read):
        return [part.decision for part in heads_parts(read)]

    assert decisions(heads(0.52, 0.05)) == ["holds", "holds"]
    assert decisions(heads(0.495, 0.05)) == ["holds", "holds"]  # within its error of the bound
    assert decisions(heads(0.40, 0.05)) == ["fails", "holds"]  # a broken bound
    assert decisions(heads(0.52, 0.51)) == ["holds", "undecided"]  # training that did not arrive shows nothing
    assert decisions(NOTHING) == ["undecided"]


def test_intervals_cover():
    """6,000 simulated comparisons at 95 %, with unequal spreads; 91 % would be told apart."""
    rng = np.random.default_rng(0)
    ratios = slopes = 0
    for _ in range(6_000):
        rival, other = (SampleCounts(rng.normal(mean, spread, 4), False) for mean, spread in ((0.7, 0.3), (0.0, 0.1)))
        _, low, high = own_contrast(rival, other, 0.95)
        ratios += low < math.exp(0.7) < high
        _, low, high = trend({q: rng.normal(2.0 * q, 0.1 * q, 5) for q in (2, 3, 4, 5)}, 0.95)
        slopes += low < 2.0 < high
    assert_count(ratios, 6_000, 0.955, planted=0.91)  # Welch's is slightly wide with so few
    assert_count(slopes, 6_000, 0.955, planted=0.91)


def test_a_trend_is_the_line_of_means():
    rng = np.random.default_rng(2)
    values = {q: rng.normal(q, 1.0, 6) for q in (2, 3, 4, 5)}
    x = np.repeat([2, 3, 4, 5], 6)
    assert trend(values, 0.95)[0] == pytest.approx(np.polyfit(x, np.concatenate([*values.values()]), 1)[0])


def test_exponents_agree_with_numpy():
    rng = np.random.default_rng(1)
    arms = {n: SampleCounts(1.3 * math.log(n) + rng.normal(0, 0.1, 4), False) for n in (4, 8, 12)}
    x = np.repeat(np.log([4, 8, 12]), 4)
    coefficients, covariance = np.polyfit(x, np.concatenate([arm.logs for arm in arms.values()]), 1, cov=True)
    slope = exponent(arms)
    assert slope.value == pytest.approx(coefficients[0])
    assert slope.error == pytest.approx(math.sqrt(covariance[0, 0]))
    middle, low, high = difference(slope, slope, 0.95)
    assert middle == 0
    assert low == -high


def test_what_cannot_be_known_is_none():
    single, none = SampleCounts(np.array([1.0]), False), SampleCounts(np.empty(0), False)
    assert own_contrast(single, single, 0.95) == (1.0, None, None)
    assert own_contrast(single, none, 0.95) == (None, None, None)
    assert trend({2: np.ones(3)}, 0.95) == (None, None, None)
    assert exponent({4: single}) is None
    assert decide((1.0, None, None), 1.0, []) == "undecided"
