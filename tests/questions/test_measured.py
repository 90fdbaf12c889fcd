"""Success that falls as samples grow is reported, and nothing else is."""

import numpy as np
import polars as pl
from scipy.stats import binom

from genscope.questions.measured import FALSE_ALARM, _falls, fall
from tests import chance


def test_a_fall_is_told_with_its_sizes():
    counts = {30: (0, 8), 60: (12, 24), 240: (8, 24), 480: (2, 26), 500: (0, 6)}
    assert fall(counts) == ("12 of 24 trials with 60 samples succeed, and 2 of 32 trials with 480 to 500 samples")
    assert fall({30: (0, 8), 60: (12, 24), 480: (8, 26)}) is None
    assert fall({60: (12, 24)}) is None
    assert fall({}) is None


def drawn(rng, rates, trials):
    return {8 * 2**step: (int(rng.binomial(trials, rate)), trials) for step, rate in enumerate(rates)}


def test_rates_that_stay_are_left_alone_and_falls_are_found():
    rng, curves = np.random.default_rng(0), 3000
    alarms = sum(fall(drawn(rng, [0.5] * 8, 16)) is not None for _ in range(curves))
    most = binom.isf(chance.FALSE_ALARM, curves, FALSE_ALARM)
    assert alarms <= most
    assert binom.cdf(most, curves, 0.04) < chance.MISS  # a rate of 4 % would be found
    found = sum(fall(drawn(rng, [0.1, 0.5, 0.5, 0.05], 48)) is not None for _ in range(100))
    assert found > 90


def test_the_remark_names_network_and_length():
    rows = [(size, number < won) for size, won in ((60, 20), (480, 2)) for number in range(24)]
    frame = pl.DataFrame(rows, schema=["sample_size", "success"], orient="row").with_columns(
        network=pl.lit("mine.py:build@01234567"), context_length=pl.lit(16), status=pl.lit("ok")
    )
    [remark] = _falls(frame)
    assert remark.startswith("mine.py:build at T = 16: 20 of 24 trials with 60 samples succeed, and 2 of 24 trials")
    assert not [*_falls(frame.with_columns(pl.lit(False).alias("success")))]
    assert not [*_falls(frame.clear())]
