import numpy as np
import pytest

from genscope.fourier import parse
from genscope.fourier.walsh import WalshFunction
from genscope.probe import probe
from tests.probe.functions import census, degree_of, random_sum, sparsity_of


def test_census():
    """All functions of three bits, read whole: exact."""
    for f, coefficients in census():
        found = probe(f, 3)
        assert found.exact
        assert (found.degree, found.sparsity) == (degree_of(coefficients), sparsity_of(coefficients))
        assert found.relevant == tuple(sorted(set().union(*coefficients)))
        listed = dict(zip(found.function.supports, found.function.coefficients, strict=True))
        assert listed | ({(): found.function.constant} if found.function.constant else {}) == pytest.approx(
            coefficients
        )


@pytest.mark.parametrize(("dim", "most"), [(20, 2**20 // 20), (64, 300_000)])
def test_a_sparse_function_takes_few_queries(dim, most):
    f = random_sum(np.random.default_rng(0), dim, 5, 20)
    found = probe(f, dim)
    assert (found.degree, found.sparsity, found.relevant) == (5, 20, f.relevant)
    assert found.function.supports == f.supports
    assert found.queries < most
    assert not found.exact
    assert found.confidence == 0.99
    assert "everywhere if the function differs from it by at most 1,024 components" in found.guarantee


def test_an_expression_is_exact_whatever_the_number_of_bits():
    found = probe(parse("x0 & x999"), 1000)
    assert (found.degree, found.sparsity, found.relevant, found.exact, found.queries) == (2, 3, (0, 999), True, 4)
    assert found.function.constant == 0.25
    assert dict(zip(found.function.supports, found.function.coefficients, strict=True)) == {
        (0,): -0.25,
        (999,): -0.25,
        (0, 999): 0.25,
    }
    long = probe(parse(" ^ ".join(f"x{i}" for i in range(30))), 40)
    assert (long.degree, long.sparsity, long.exact) == (30, 1, False)


def test_a_dense_function_of_many_bits_is_not_decided():
    found = probe(lambda x: x.sum(axis=-1) > 20, 41, queries=300_000)
    assert found.degree is found.sparsity is found.confidence is None
    assert found.degree_at_least >= 3
    assert found.sparsity_at_least > 1000
    assert found.relevant == tuple(range(41))
    assert found.queries <= 300_000
    assert "Cannot tell with 300000 queries" in found.guarantee
    assert "a tolerance above that would accept them" in found.guarantee


def test_a_dense_function_of_some_bits_is_read_whole():
    found = probe(lambda x: x.all(axis=-1), 17)
    assert (found.degree, found.sparsity, found.exact) == (17, 2**17 - 1, True)
    assert found.function.sparsity < 2**17 - 1  # the largest are listed
    assert found.queries < 2**18


@pytest.mark.parametrize("scale", [1.0, 0.01, 1e6])
def test_a_tolerance_leaves_out_what_is_small(scale):
    """A share of the energy: what the function is multiplied by makes no difference."""
    rng = np.random.default_rng(1)
    f, tail = random_sum(rng, 12, 2, 3), random_sum(rng, 12, 5, 50, energy=0.01)
    exact = probe(lambda x: scale * (f(x) + tail(x)) + scale, 12, tolerance=0.01)
    assert (exact.degree, exact.sparsity, exact.exact) == (2, 3, True)
    assert exact.left_out == pytest.approx(0.01 / 1.01)
    assert f"leaves out {100 * 0.01 / 1.01:.3g} % of the energy" in exact.guarantee
    f, tail = (
        WalshFunction(30, ((0, 9), (3, 4), (28, 29)), (0.6, -0.64, 0.48)),
        random_sum(rng, 30, 5, 50, energy=0.001),
    )
    found = probe(lambda x: scale * (f(x) + tail(x)), 30, tolerance=0.02)
    assert (found.degree, found.sparsity, found.exact) == (2, 3, False)
    assert found.function.supports == f.supports
    assert found.function.coefficients == pytest.approx([scale * c for c in f.coefficients], rel=0.05)
    assert found.left_out == pytest.approx(0.001, rel=0.2)
    assert "at most 0.02 of the energy" in found.guarantee
    assert probe(lambda x: scale * (f(x) + tail(x)), 30, tolerance=1e-4, queries=100_000).degree is None


@pytest.mark.parametrize("queries", [1, 5, 20, 100, 1000, 3000])
def test_a_small_budget_is_kept_and_is_no_error(queries):
    found = probe(random_sum(np.random.default_rng(2), 30, 3, 20), 30, queries=queries)
    assert found.queries <= queries
    assert found.sparsity is None
    assert "Allow more queries" in found.guarantee
    constant = probe(lambda x: 1.0, 30, queries=queries)
    assert constant.sparsity is None
    why = "what is listed is not" if 5 < queries < 2000 else "it takes more to compare what is listed with"
    assert f"{why} the function" in constant.guarantee


def test_a_constant_on_bits_is_said_to_vary_on_signs():
    assert "--inputs signs" in probe(lambda x: x.prod(axis=-1), 40, queries=50_000).guarantee
    found = probe(lambda x: x.prod(axis=-1), 40, inputs="signs")
    assert (found.degree, found.sparsity) == (40, 1)
    assert "signs" not in probe(lambda x: 1.0, 40).guarantee


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"bits": 0}, "Correct the one that is out of range"),
        ({"bits": 3, "queries": 0}, "Correct the one that is out of range"),
        ({"bits": 3, "tolerance": -1.0}, "Correct the one that is out of range"),
        ({"bits": 3, "tolerance": 1.0}, "a share of the energy, at least 0 and below 1"),
        ({"bits": 3, "confidence": 1.5}, "for example, 0.99"),
    ],
)
def test_requests_that_make_no_sense(options, advice):
    with pytest.raises(ValueError, match=advice):
        probe(lambda x: x[0], **options)


def test_an_expression_needs_its_bits():
    with pytest.raises(ValueError, match="Give at least 6 bits"):
        probe(parse("x5"), 3)


def test_a_function_of_few_bits_is_read_by_its_own_table():
    """Three ANDs of four bits among 64: 4095 components of twelve bits, too many to recover."""

    def f(x):
        return x[:, :4].all(axis=1) | x[:, 20:24].all(axis=1) | x[:, 60:].all(axis=1)

    found = probe(f, 64, queries=200_000)
    assert (found.degree, found.sparsity, found.exact) == (12, 4095, False)
    assert found.relevant == (*range(4), *range(20, 24), *range(60, 64))
    assert found.queries <= 200_000
    assert found.confidence == 0.99


def test_a_rare_value_near_the_ends_is_no_constant():
    """AND of 30 bits is 0 at every random input, and 1 at the input of ones."""
    found = probe(lambda x: x[:, :30].all(axis=1), 40, queries=100_000)
    assert found.sparsity is None
