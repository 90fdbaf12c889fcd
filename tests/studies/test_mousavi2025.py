"""Each study on a shrunken point: what a trial returns, what is shared between trials, what is refused."""

import dataclasses
import itertools
import json

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope.lab.plans import study as lab_study
from genscope.studies import (
    mousavi2025_1str,
    mousavi2025_block,
    mousavi2025_heads,
    mousavi2025_lengths,
    mousavi2025_simple,
    mousavi2025_sparsity,
)
from genscope.studies._token_protocols import CODE, PROTOCOLS, TEXT, THEORY
from genscope.studies._token_training import (
    PromptLoss,
    Shape,
    blind_risk,
    draw_model,
    draw_task,
    measure,
    predict,
    prepare,
    shape_of,
    task_keys,
)
from genscope.tasks import Batch
from genscope.tasks.links import Linear
from genscope.tasks.token_encoding import default_encoding_dim
from genscope.tasks.token_regression import TokenRegression

KEY = jr.key(11)
STUDIES = [
    module.STUDY
    for module in (
        mousavi2025_1str,
        mousavi2025_simple,
        mousavi2025_sparsity,
        mousavi2025_block,
        mousavi2025_heads,
        mousavi2025_lengths,
    )
]


def small(protocol=CODE, **options):
    settings = dict(architecture="transformer", context_length=4, draw=0, threshold=0.7, rate=1e-3, every=10)
    return measure(KEY, protocol=protocol, **(settings | options))


def test_skipping_checks_gives_the_counts_of_exhaustive_evaluation():
    """1STR, N = 4, the Transformer; both by one compiled program."""
    for draw in range(3):
        screened, exact = (small(draw=draw, share_up_to=4, exact=exact) for exact in (False, True))
        assert screened["reached"]
        assert screened["samples"] == exact["samples"]
        assert screened["checks_skipped"] > exact["checks_skipped"] == 0
        assert 2_000 < screened["samples"] < 12_000  # published: 6,000
        assert json.loads(screened["settings"])["scale"] == "none"


def test_one_run_records_both_crossings():
    """The same run as with either threshold alone; at N = 4 the relative one, 0.5625, is the stricter."""
    both, published = (small(share_up_to=4, until=until) for until in ("both", "published"))
    assert (both["samples"], both["reached"]) == (published["samples"], True)
    assert both["reached_relative"]
    assert both["samples_relative"] > both["samples"]
    assert both["risk"] < both["relative_threshold"] == pytest.approx(0.75 * 0.75)
    assert 0 < both["index_share"] < both["index_share_relative"] < 1
    assert both["index_share_at_end"] == both["index_share_relative"]
    assert (published["reached_relative"], published["index_share_relative"]) == (False, None)
    assert published["index_share_at_end"] == published["index_share"] == both["index_share"]
    assert published["samples_relative"] == published["samples"]  # a lower limit


def test_a_run_that_misses_its_threshold_is_asked_for_the_index_too():
    early = dataclasses.replace(CODE, budget=20 * 64)
    stopped, unasked = (small(early, share_up_to=4, asks_for_index=asks) for asks in (True, False))
    assert (stopped["reached"], stopped["index_share"]) == (False, None)
    assert 0 < stopped["index_share_at_end"] < 0.2
    assert unasked["index_share_at_end"] is None
    assert (stopped["samples"], stopped["risk"]) == (unasked["samples"], unasked["risk"])


def test_a_looser_relative_threshold_is_crossed_first():
    record = small(share_up_to=4, until="both", threshold=0.3)
    assert record["samples_relative"] < record["samples"]
    alone = small(share_up_to=4, until="relative", threshold=0.3)
    assert (alone["samples_relative"], alone["reached"]) == (record["samples_relative"], False)


@pytest.mark.parametrize(("link", "sparsity"), [("linear", 1), ("hermite2", 1), ("hermite2", 3)])
def test_the_risk_without_the_index(link, sparsity):
    """The mean label over all positions, computed for each prompt: no predictor that ignores t does better."""
    n, size = 4, 60_000
    task = TokenRegression.draw(KEY, context_length=n, link=link, sparsity=sparsity)
    x, t = task.raw(jr.key(3), size)
    y = np.asarray(jax.jit(jax.vmap(task.labels))(x, t))[:, 0]
    all_t = jnp.asarray(list(itertools.product(range(n), repeat=sparsity)))
    mean = np.asarray(jax.jit(jax.vmap(lambda one: jnp.mean(jax.vmap(task.link)(one[all_t]))))(x))
    losses = (mean - y) ** 2
    assert abs(losses.mean() - blind_risk(n)) < 5 * losses.std() / np.sqrt(size)
    assert 5 * losses.std() / np.sqrt(size) < 0.05  # 1 - 1/N and 1, or 1 - 1/(2N), would be told apart


@pytest.mark.slow
def test_labels_of_the_next_prompt_are_not_learned():
    class Wrong(PromptLoss):
        def losses(self, model, batch):
            return super().losses(model, Batch(batch.x, jnp.roll(batch.y, 1, axis=0)))

    record = small(dataclasses.replace(CODE, budget=12_800), objective=Wrong)
    assert not record["reached"]
    assert record["samples"] == 12_800


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("architecture", ["transformer", "ffn", "rnn", "gru-128", "lstm"])
def test_every_architecture_runs_under_every_protocol(protocol, architecture):
    brief = dataclasses.replace(PROTOCOLS[protocol], test_size=500, budget=640)
    record = small(brief, architecture=architecture, context_length=3, threshold=9.0)
    assert record["reached"]
    assert record["samples"] == 640


def sizes(length):
    return jnp.int32(length), jnp.int32(default_encoding_dim(length))


@pytest.mark.parametrize("architecture", ["transformer", "ffn"])
def test_padding_changes_neither_task_nor_network(architecture):
    """Predictions on padded prompts do not depend on what fills the padding, and the sizes are the smaller task's."""
    shape = Shape(6, 8, 1, padded=True)

    @jax.jit
    def look(key):
        task = draw_task(task_keys(key, 4), *sizes(4), shape=shape, link="linear")
        model = draw_model(key, task, sizes(4)[1], architecture=architecture, protocol=CODE)
        prompts = task.inputs(jr.key(1), 20)
        changed = prompts.at[:, 4:, :10].set(7.0)
        return predict(model, task, prompts), predict(model, task, changed), task.encoding, prompts

    plain, changed, encoding, prompts = look(KEY)
    np.testing.assert_allclose(plain[:, :4], changed[:, :4], atol=1e-6)
    assert not np.any(encoding[4:])
    assert not np.any(encoding[:, 6:])
    np.testing.assert_allclose(np.abs(encoding[:4, :6]), 1 / np.sqrt(6), rtol=1e-5)
    assert np.asarray(prompts)[:, :4, 10].max() == 3


def test_streams_are_separate_and_draws_are_shared():
    shape = shape_of("transformer", 4, 1, 4)
    options = {"shape": shape, "architecture": "transformer", "protocol": CODE, "link": "linear", "simple": False}
    base = (jr.key(0), jr.key(1), jr.key(2))

    def prepared(keys, length):
        of_task, init_key, test_key = keys
        return prepare(task_keys(of_task, length), init_key, test_key, *sizes(length), **options)

    first = prepared(base, 4)
    for changed, same in ((0, ("model",)), (1, ("task", "test")), (2, ("task", "model"))):
        keys = tuple(jr.key(9) if i == changed else key for i, key in enumerate(base))
        other = prepared(keys, 4)
        for name in ("task", "model", "test"):
            equal = jax.tree.all(jax.tree.map(jnp.array_equal, getattr(first, name), getattr(other, name)))
            assert bool(equal) == (name in same) or name == "test"
    # one link for all lengths, encodings for each length
    longer = prepared(base, 3)
    assert isinstance(first.task.link, Linear)
    assert isinstance(longer.task.link, Linear)
    assert jnp.array_equal(first.task.link.directions, longer.task.link.directions)
    assert not jnp.array_equal(first.task.encoding, longer.task.encoding)
    # the test law of the code is simple whatever is trained
    assert np.ptp(np.asarray(first.test.x[:, :, 10]), axis=1).max() == 0


def differing(one, other):
    return {field.name for field in dataclasses.fields(one) if getattr(one, field.name) != getattr(other, field.name)}


def test_text_and_code_differ_apart_from_text_and_theory():
    """What the text leaves open is equal, but for draws; the theory differs in networks and encodings alone."""
    names = {field.name for field in dataclasses.fields(CODE)}
    open_in_the_text = {"check_every", "check_every_simple", "budget"}
    assert names - differing(TEXT, CODE) == open_in_the_text | {"rival_scale", "include_token"}
    assert differing(TEXT, THEORY) == {"rival_scale", "attention", "include_token"}
    assert [TEXT.scale_for(name) for name in ("transformer", "ffn", "rnn")] == ["sqrt_d_over_q", "none", "none"]
    assert {THEORY.scale_for(name) for name in ("transformer", "ffn", "rnn")} == {"sqrt_d_over_q"}


@pytest.mark.parametrize(("protocol", "kind"), [("text", "Projected"), ("code", "Scaled"), ("theory", "Token")])
def test_networks_of_the_protocols(protocol, kind):
    task = TokenRegression.draw(KEY, context_length=3)
    model, recurrent = (
        draw_model(KEY, task, sizes(3)[1], architecture=name, protocol=PROTOCOLS[protocol])
        for name in ("transformer", "rnn")
    )
    assert type(model).__name__.startswith(kind)
    assert (model.readout.offset is None) == (protocol != "code")
    assert recurrent.include_token == (protocol != "theory")
    assert hasattr(recurrent.readout, "outer") == (protocol == "theory")  # two layers, else linear


@pytest.mark.slow
def test_the_block_appears_and_epochs_visit_everything():
    source = mousavi2025_block.Redrawn(TokenRegression.draw(KEY, context_length=2), KEY, KEY)
    first, second = (source.window(start, 781)[1] for start in (0, 781))
    assert first.shape == (781, 64)
    assert len(np.unique(first)) == 781 * 64
    assert not np.array_equal(first, second)
    record = mousavi2025_block.trial(KEY, context_length=6, protocol="code", steps=700)
    assert record["steps_taken"] == 700
    assert record["block_share"] > 0.5 > record["block_chance"]
    assert record["curve_steps"][-1] == 700
    assert record["query_key"].shape == (26, 26)
    assert 1 / 6 < record["attention_mass"] <= 1


@pytest.mark.slow
def test_heads_record(monkeypatch):
    monkeypatch.setattr(mousavi2025_heads, "STEPS", 400)
    record = mousavi2025_heads.trial(KEY, family="positional", sparsity=2, heads=1, dim=1)
    assert record["bound"] == 0.5
    assert record["risk"] + 6 * record["risk_sem"] > 0.5  # false alarm 1e-9
    assert record["risk"] < 1.1
    assert mousavi2025_heads.lower_bound("full", heads=1, sparsity=2, dim=8) == pytest.approx(0.5 * 7 / 8)
    with pytest.raises(ValueError, match="Choose one of them"):
        mousavi2025_heads.trial(KEY, family="free", sparsity=2, heads=1, dim=1)


@pytest.mark.slow
def test_lengths_share_encodings_and_an_untrained_network_reads_no_index():
    task = TokenRegression.draw(KEY, context_length=64, encoding_dim=20)
    short = mousavi2025_lengths.of_length(task, 5)
    assert np.array_equal(short.encoding, task.encoding[:5])
    assert short.link is task.link
    point = {"architecture": "transformer", "context_length": 4, "task": "1STR"}
    begun, learned = (mousavi2025_lengths.trial(KEY, **point, steps=steps) for steps in (1, 700))
    assert begun["relative_risk"].shape == (8,)
    assert begun["relative_risk"].min() > 0.9
    assert learned["relative_risk_trained"] < 0.5
    assert learned["relative_risk_longest"] > learned["relative_risk_trained"]
    with pytest.raises(ValueError, match="tasks 1STR and simple-1STR"):
        mousavi2025_lengths.trial(KEY, **(point | {"task": "2STR"}), steps=1)


@pytest.mark.slow
def test_sparsity_uses_the_text_where_there_is_no_code(monkeypatch):
    monkeypatch.setattr(mousavi2025_sparsity, "THRESHOLD", 9.0)
    record = mousavi2025_sparsity.trial(KEY, architecture="ffn", sparsity=2, protocol="code", draw=0, until="both")
    used = json.loads(record["settings"])
    assert (used["weight_decay"], used["simple_test"], used["units_grow"]) == (0.1, False, True)
    assert (used["attention"], used["test_size"]) == ("scaled", 10_000)


@pytest.mark.parametrize(
    ("point", "advice"),
    [({"architecture": "cnn"}, "architectures"), ({"protocol": "slides"}, "protocols are text, code, theory")],
)
def test_unknown_names_are_refused(point, advice):
    good = {"architecture": "ffn", "context_length": 4, "protocol": "code", "draw": 0, "run": 0}
    for module, rest in ((mousavi2025_1str, {}), (mousavi2025_simple, {"until": "both"})):
        with pytest.raises(ValueError, match=advice):
            module.trial(KEY, **(good | point | rest))


def test_an_unknown_end_of_a_run_is_refused():
    with pytest.raises(ValueError, match="until published, relative or both"):
        small(until="never")


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_plans_are_possible(study):
    for budget in lab_study.BUDGETS:
        plan = study.plan(budget)
        assert len({lab_study.canonical(dict(point)) for point in plan.points}) == len(plan.points)
        for point in plan.points:
            study.check(point)
            assert set(point) == set(plan.points[0])
