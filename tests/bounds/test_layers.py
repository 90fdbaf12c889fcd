import math

import pytest

from genscope.bounds import deep, heads
from genscope.bounds.covering import linear_size, matrix_size
from tests.bounds.cases import DEEP, HEAD

NORMS = {
    "value_21": 1.1,
    "value_spectral": 0.9,
    "query_key_21": 1.2,
    "query_key_spectral": 0.8,
    "output_21": 1.3,
    "output_spectral": 0.7,
    "readout_norm": 1.4,
    "lipschitz": 1.05,
    "epsilon": 0.9,
    "width": 8,
    "dimension": 16,
    "points": 1000,
    "readout_points": 100,
}


def radii(layers, heads=1, residual=False, token=1.0, context=1.0):
    """Budgets from which on each cover is trivial, by the displayed formula, without logarithms."""
    growth = heads * 1.05 * 0.7 * 0.9 * (1 + 2 * 0.8) + (1 if residual else 0)
    found = {"readout": 1.4}
    for i in range(1, layers + 1):
        later = 1.4 * growth ** (layers - i)
        x, z = (token, context) if i == 1 else (1.0, 1.0)
        found[f"layer {i}: output"] = later * 1.3 * 1.05
        found[f"layer {i}: value"] = later * 1.05 * 0.7 * 1.1 * x
        found[f"layer {i}: query-key"] = later * 1.05 * 0.7 * 0.9 * x * z * 1.2 * x
    return found


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({"layers": 1}, {}),
        ({"layers": 3}, {}),
        ({"layers": 2, "residual": True}, {"residual": True}),
        ({"layers": 2, "heads": 3}, {"heads": 3}),
        ({"layers": 2, "token": 0.5, "context": 0.25}, {"input_norm": 0.5, "context_norm": 0.25}),
    ],
)
def test_explicit_form_against_a_split_by_hand(options, arguments):
    """Shares in proportion to radius^(2/3): a valid split, which the bound must match or beat, but not by much."""
    copies = options.get("heads", 1)
    found = deep(**NORMS, **arguments, layers=options["layers"])
    each = radii(**options)
    assert set(found.terms) == set(each)
    number = {name: 1 if name == "readout" else copies for name in each}
    total = sum(number[name] * radius ** (2 / 3) for name, radius in each.items())
    value = 0.0
    for name, radius in each.items():
        log_kappa = 2 * math.log(radius / (0.9 * radius ** (2 / 3) / total))
        if name == "readout":
            value += linear_size(log_kappa, math.log(100))
        else:
            outputs = 8 if name.endswith("value") else 16
            value += number[name] * matrix_size(log_kappa, math.log(outputs * 1000))
    assert 0.8 * value <= found.value <= value * (1 + 1e-12)


def test_order_form_by_hand():
    given = {name: value for name, value in NORMS.items() if name != "readout_points"} | {"value_spectral": 2.0}
    expected = (2.0 * 1.05) ** 3 * 1.4**2 * 1.3**2 / 0.9**2 * math.log(16 * 1000)
    found = deep(**given, layers=3, form="order")
    assert found.value == pytest.approx(expected)
    assert not found.explicit
    squared = deep(**given, layers=3, form="order", depth_exponent=2.0).value
    assert squared == pytest.approx(expected * (2.0 * 1.05) ** 3)
    # Spectral norms below 1 / L do not make depth a blessing: C_2 may be taken as 1 / L.
    small = given | {"value_spectral": 0.1}
    assert deep(**small, layers=9, form="order").value == pytest.approx(deep(**small, layers=1, form="order").value)


def test_depth_is_exponential_only_if_layers_expand(coarse):
    tame = [deep(**NORMS | {"value_spectral": 0.3}, layers=layers).value for layers in (6, 12)]
    wild = [deep(**NORMS | {"value_spectral": 1.5}, layers=layers).value for layers in (2, 4)]
    assert tame[1] < 3 * tame[0]
    assert wild[1] > 10 * wild[0]


def test_lists_per_layer(coarse):
    listed = deep(**NORMS | {"value_21": [1.1, 1.1], "output_spectral": [0.7, 0.7]}, layers=2)
    assert listed.terms == deep(**NORMS, layers=2).terms


def test_one_layer_costs_more_than_its_heads():
    """The deep network covers an output matrix and a read-out besides."""
    assert deep(**HEAD | DEEP | {"layers": 1}).value > heads(**HEAD, heads=1).value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_norm": 1.5}, "input_norm=1.5.* at least 0 and at most 1. Change"),
        ({"layers": 0}, "layers=0.* at least 1"),
        ({"layers": 10**6}, "layers=1000000.* at most 1000"),
        ({"value_21": [1.0]}, "'value_21': 1.* for 2 parts"),
        ({"form": "order", "heads": 2}, "heads with form='order'.* Leave it out"),
        ({"form": "order", "residual": True}, "residual with form='order'"),
        ({"constant": 2.0}, "constant with form='explicit'"),
        ({"depth_exponent": 2.0}, "depth_exponent with form='explicit'"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(ValueError, match=message):
        deep(**HEAD | DEEP | change)
