"""No study draws twice from one key: JAX's own check of keys, on one trial of each study at its quick budget."""

import contextlib

import jax
import jax.random as jr
import pytest
from jax.errors import KeyReuseError

from genscope.lab.execution.compute import trial_key
from genscope.lab.plans.study import Trial
from genscope.studies import ALL

# Studies that meet the same draws twice on purpose.
PAIRED = {
    "edelman2022-lipschitz": "the weakened inequality is searched from the same starts",
    "mousavi2025-1str": "both crossings of a run are looked at with the same prompts",
}


def first_trial(study):
    plan = study.plan("quick")
    point = dict(plan.points[0])
    if plan.search is not None:  # an adaptive study adds the axis it searches
        point[plan.search.axis] = plan.search.lowest
    return Trial(study.name, study.revision, point, 0)


@pytest.mark.slow
@pytest.mark.parametrize("study", ALL, ids=lambda study: study.name)
def test_each_key_is_used_once(study):
    trial = first_trial(study)
    key = trial_key(study, trial)
    expected = pytest.raises(KeyReuseError) if study.name in PAIRED else contextlib.nullcontext()
    with jax.debug_key_reuse(True), expected:
        study.trial(key, **trial.point)


def test_the_check_finds_a_key_that_is_used_twice():
    key = jr.key(0)
    with jax.debug_key_reuse(True):
        jr.normal(key, ())
        with pytest.raises(KeyReuseError, match="consumed"):
            jr.uniform(key, ())
