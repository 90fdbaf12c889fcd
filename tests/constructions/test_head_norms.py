"""What the covering bound asks for, against dense matrices and all tokens."""

import itertools
import json
import shlex

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from genscope import bounds
from genscope.constructions import SparseFunction, construct, cover_arguments, head_norms
from genscope.constructions.head_norms import command, readout_lipschitz
from genscope.precision import float64
from tests.cli.program import invoke


@pytest.mark.parametrize("encoding", ["positional", "bag", "random"])
@pytest.mark.parametrize("expression", ["maj(x0,x2,x3)", "x0&~x1|x3"])
def test_norms_are_those_of_the_dense_matrices_and_of_all_tokens(encoding, expression):
    function = SparseFunction.parse(expression, context_length=4)
    dimension = 60 if encoding == "random" else None
    model = construct(function, encoding=encoding, dimension=dimension, key=jr.key(0)).model
    found = head_norms(model)
    [head] = model.heads.heads
    w_q, w_k, w_v, w_c = (np.asarray(w, float) for w in (head.w_q, head.w_k, head.w_v, head.w_c))
    query_key = w_q @ w_k.T
    with float64():
        tokens = [model.encoding.tokens(jnp.array(x)) for x in itertools.product((0, 1), repeat=4)]
    expected = {
        "value_21": sum(np.linalg.norm(column) for column in w_v.T),
        "value_spectral": np.linalg.svd(w_v)[1][0],
        "query_key_21": sum(np.linalg.norm(row) for row in query_key),  # columns of the transpose
        "input_norm": max(np.linalg.norm(token) for each in tokens for token in np.asarray(each)),
        "context_norm": np.linalg.norm(np.asarray(model.encoding.cls)),
        "lipschitz": np.linalg.svd(w_c)[1][0],
        "width": w_v.shape[1],
        "dimension": w_v.shape[0],
    }
    assert found == pytest.approx(expected, rel=1e-9)


def test_the_readout_stretches_no_more_than_it_says():
    model = construct(SparseFunction.parse("x0&~x1|x3", context_length=4), key=jr.key(0)).model
    rng = np.random.default_rng(0)
    with float64():
        pairs = rng.normal(size=(200, 2, model.readout.dim))
        ratios = [
            abs(float(model.readout(jnp.asarray(a)) - model.readout(jnp.asarray(b)))) / np.linalg.norm(a - b)
            for a, b in pairs
        ]
    assert 0 < max(ratios) <= readout_lipschitz(model)


def test_the_ready_line_computes_the_bound():
    built = construct(SparseFunction.parse("maj(x0,x2,x3)", context_length=40), key=jr.key(0))
    arguments = cover_arguments(built, 40)
    assert arguments["points"] == 81
    line = shlex.split(command(arguments))
    assert line[:3] == ["genscope", "bound", "head"]
    printed = invoke(*line[1:], "--json")
    assert json.loads(printed.stdout)["value"] == pytest.approx(bounds.head(**arguments).value, rel=1e-6)
