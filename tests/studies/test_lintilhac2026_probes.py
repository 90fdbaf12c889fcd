"""The study behind claim C8, shrunken: what trials return, that they decide, and that a broken tester shows."""

import jax.random as jr
import pytest

from genscope.claims.lintilhac2026_probes import C8
from genscope.lab import Store, read, run, select
from genscope.probe import degree
from genscope.studies import lintilhac2026_probes_trained
from genscope.studies.lintilhac2026_probes import STUDY, trial
from tests.probe.functions import differences_without_dead_bits

POINT = {"context_length": 20, "degree": 3, "sparsity": 5}


@pytest.fixture
def verdict(tmp_path):
    def decide(seeds=40):
        where = {"context_length": [20], "degree": [2, 3], "sparsity": [5], "restriction": ["affine"]}
        with Store(f"sqlite:///{tmp_path / 'store.db'}") as store:
            assert run(STUDY, select(STUDY, "quick", where=where, seeds=seeds), store=store).failed == 0
            found = read(store, select(STUDY, "quick", where=where, seeds=seeds))
        return C8.verdict([found], budget="quick", seconds=0.0)

    return decide


def test_a_trial_says_what_was_found():
    ours = trial(jr.key(0), **POINT, restriction="affine")
    assert (ours["found_degree"], ours["found_sparsity"]) == (3, 5)
    assert ours["exact_degree"]
    assert ours["exact_sparsity"]
    assert ours["recovered"]
    theirs = trial(jr.key(0), **POINT, restriction="coordinate")
    assert theirs["found_sparsity"] <= 5
    assert theirs["exact_sparsity"] == (theirs["found_sparsity"] == 5)


def test_the_claim_is_decided(verdict):
    found = verdict()
    assert found.verdict == "holds"
    assert found.numbers["functions"] == 80


def test_a_tester_without_dead_bits_fails_the_claim(verdict, monkeypatch):
    monkeypatch.setattr(degree, "differences", differences_without_dead_bits)
    assert verdict(seeds=10).verdict == "fails"


@pytest.mark.slow  # training compiles for some seconds
def test_a_trained_network_is_told_by_queries():
    found = lintilhac2026_probes_trained.trial(
        jr.key(1), context_length=17, sample_size=1024, degree=1, sparsity=2, steps=2000
    )
    assert found["converged"]
    assert (found["coarse_degree"], found["coarse_right"], found["tested_degree"]) == (1, True, 1)
    assert found["coarse_sparsity"] <= 2
    assert found["coarse_queries"] <= lintilhac2026_probes_trained.QUERIES


def test_points_that_no_trial_can_have():
    assert STUDY.check is not None
    with pytest.raises(ValueError, match="restriction must be one of affine, coordinate"):
        STUDY.check(POINT | {"restriction": "random"})
    with pytest.raises(ValueError, match="lies between"):
        STUDY.check(POINT | {"context_length": 1})
