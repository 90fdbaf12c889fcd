r"""Products with the Hessian and the Gauss–Newton matrix of a model's mean loss, parameters in one flat vector.

With the loss $L(\theta)=\frac1n\sum_i\ell(f_\theta(x_i),y_i)$,
$$\nabla^2L=\underbrace{\frac1n\sum_iJ_i^\top\nabla^2\ell_i\,J_i}_{\text{Gauss–Newton}}
+\frac1n\sum_i\sum_o\partial_o\ell_i\,\nabla^2f_o(x_i).$$

Source: lintilhac2026, Section 2.2; Pearlmutter 1994 (products by forward over reverse differentiation).
Guarantee: exact up to rounding. Memory is that of one chunk of examples and of the vectors, whatever the sample size.
At kinks of ReLU the Hessian is that of the smooth pieces: the mass at the kink is left out.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree, Shaped

from genscope.compilation import compiled_faster
from genscope.models import outputs
from genscope.precision import float64
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.train.loss import Loss, weighted_mean
from genscope.train.objective import Predict

GRADIENT_NUMBERS = 2**24  # of gradients of single examples that are held at a time: 64 MB in float32


class ParameterGroup(NamedTuple):
    """A name and its place in the flat vector."""

    name: str
    start: int
    stop: int


class Curvature:
    """A model at its data: the flat parameters, their groups, and products with matrices of second derivatives."""

    def __init__(self, model: PyTree, batch: Batch, loss: Loss, *, chunk: int, predict: Predict | None):
        """Split the model and cut the examples into chunks."""
        if chunk < 1:
            raise Refusal(f"got {chunk=}: chunks hold at least one example. Give a positive number.")
        parameters, self._rest = eqx.partition(model, eqx.is_inexact_array)
        leaves = jax.tree_util.tree_leaves_with_path(parameters)
        if not leaves or any(jnp.iscomplexobj(leaf) for _, leaf in leaves):
            raise Refusal(
                f"got a {type(model).__name__} with {len(leaves)} arrays of real or complex numbers: sharpness is "
                "about real parameters, at least one. Give a model whose weights are floating point arrays."
            )
        self._double = any(leaf.dtype == np.float64 for _, leaf in leaves)
        self._loss, self._predict = loss, predict
        with self.precision():
            self.parameters, self._unravel = ravel_pytree(parameters)
            self._x, self._y = jnp.asarray(batch.x), jnp.asarray(batch.y)
            self._check_examples()
        self._chunk = chunk
        self.groups = groups(model)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.parameters.size

    @contextlib.contextmanager
    def precision(self) -> Iterator[None]:
        """The model's own number type, and JAX's usual promotion: a model may mix types."""
        with float64() if self._double else contextlib.nullcontext(), jax.numpy_dtype_promotion("standard"):
            yield

    def products(self, vectors: np.ndarray, *, gauss_newton: bool = False) -> np.ndarray:
        """Rows Hv, with the Hessian H or the Gauss–Newton matrix."""
        linear_map = _gauss_newton_map if gauss_newton else _hessian_map
        with self.precision():
            function = self._function(forwards=gauss_newton)
            rows = jnp.asarray(vectors, self.parameters.dtype)
            found = _accumulated(linear_map, function, self.parameters, rows, self._chunks(self._chunk))
            return np.asarray(found, float)

    def gauss_newton_diagonal(self) -> np.ndarray:
        """Diagonal of the Gauss–Newton matrix, from the gradients of every example."""
        outputs = math.prod(self._y.shape[1:])
        with self.precision():
            chunks = self._chunks(min(self._chunk, max(1, GRADIENT_NUMBERS // (self.size * max(1, outputs)))))
            return np.asarray(_diagonal(self._function(), self.parameters, chunks), float)

    def losses(self, displacements: np.ndarray, scale: float = 1.0) -> np.ndarray:
        r"""$L(\theta+\text{scale}\cdot v)$ for every row v."""
        with self.precision():
            rows = jnp.asarray(displacements, self.parameters.dtype)
            moved = jnp.asarray(scale, self.parameters.dtype)
            return np.asarray(
                _moved_losses(self._function(), self.parameters, rows, moved, self._chunks(self._chunk)), float
            )

    def draw(self, key: Array, number: int, *, signs: bool = False) -> np.ndarray:
        """Random rows: independent normal numbers or signs, in the precision of the parameters."""
        draw = jax.random.rademacher if signs else jax.random.normal
        with self.precision():
            return np.asarray(draw(key, (number, self.size), self.parameters.dtype))

    def _function(self, *, forwards: bool = False) -> "_Function":
        """The model as a function; one to be differentiated forwards is by example where the fast form cannot be."""
        function = _Function(self._rest, self._unravel, self._loss, self._predict or outputs)
        if not forwards or self._predict:
            return function
        try:
            slope: Any = eqx.filter_jit(_slope)
            slope.lower(function, self.parameters, self._x[:1])
        except TypeError:  # JAX's, of a form with a gradient of its own
            return dataclasses.replace(function, predictor=_by_example)
        return function

    def _chunks(self, most: int) -> tuple[Array, Array, Array]:
        """Examples as equal chunks; those that fill up the last have weight 0, and weights sum to 1 over all."""
        size = len(self._x)
        number = -(-size // most)
        length = -(-size // number)
        index = np.minimum(np.arange(number * length), size - 1)  # a copy of a real example: its numbers are finite
        weight = np.where(np.arange(number * length) < size, 1.0 / size, 0.0).reshape(number, length)
        x, y = (array[index].reshape(number, length, *array.shape[1:]) for array in (self._x, self._y))
        return x, y, jnp.asarray(weight, self.parameters.dtype)

    def _check_examples(self) -> None:
        if len(self._x) != len(self._y) or len(self._x) < 1:
            raise Refusal(
                f"got {len(self._x)} inputs and {len(self._y)} labels: there is one label for every input, and at "
                "least one example. Give x and y of the same length."
            )
        shape = jax.eval_shape(
            lambda parameters, x: self._function().predict(parameters, x), self.parameters, self._x
        ).shape
        if shape != self._y.shape:
            raise Refusal(
                f"got labels of shape {self._y.shape} for predictions of shape {shape}: a label has the shape of a "
                "prediction. Reshape y, or give a model with that output."
            )


class _Function(eqx.Module):
    """The model as a function of its flat parameters."""

    rest: PyTree
    unravel: Callable[[Array], PyTree] = eqx.field(static=True)
    loss: Loss = eqx.field(static=True)
    predictor: Predict = eqx.field(static=True)

    def predict(self, parameters: Float[Array, " p"], x: Shaped[Array, "m ..."]) -> Float[Array, "m ..."]:
        return self.predictor(eqx.combine(self.unravel(parameters), self.rest), x)

    def risk_of(self, predictions: Array, y: Array, weight: Float[Array, " m"]) -> Float[Array, ""]:
        """The part of these examples in the mean loss."""
        flat = predictions.reshape(-1)
        repeated = jnp.repeat(weight, flat.size // weight.size).astype(flat.dtype)
        share = jnp.sum(weight).astype(flat.dtype)
        return share * weighted_mean(self.loss(flat, y.reshape(-1)), repeated)

    def risk(self, parameters: Float[Array, " p"], x: Array, y: Array, weight: Array) -> Float[Array, ""]:
        return self.risk_of(self.predict(parameters, x), y, weight).astype(parameters.dtype)


def _slope(function: _Function, parameters: Float[Array, " p"], x: Array) -> Any:
    return jax.jvp(lambda theta: function.predict(theta, x), (parameters,), (parameters,))


def _by_example(model: Any, x: Shaped[Array, "m ..."]) -> Float[Array, "m ..."]:
    return jax.vmap(model)(x)


def _hessian_map(function: _Function, parameters: Array, x: Array, y: Array, weight: Array) -> Callable[[Array], Array]:
    """The gradient linearized once, for any number of vectors."""
    return jax.linearize(lambda theta: jax.grad(function.risk)(theta, x, y, weight), parameters)[1]


def _gauss_newton_map(
    function: _Function, parameters: Array, x: Array, y: Array, weight: Array
) -> Callable[[Array], Array]:
    predictions, jvp = jax.linearize(lambda theta: function.predict(theta, x), parameters)
    transpose = jax.linear_transpose(jvp, parameters)
    slope = jax.linearize(jax.grad(lambda outputs: function.risk_of(outputs, y, weight)), predictions)[1]
    return lambda vector: transpose(slope(jvp(vector)))[0]


@compiled_faster
def _accumulated(linear_map: Callable[..., Any], function: _Function, parameters: Array, rows: Array, chunks: Any):
    """Sum over chunks of the linear map of each, at every row."""

    def step(total: Array, chunk: tuple[Array, Array, Array]) -> tuple[Array, None]:
        return total + jax.lax.map(linear_map(function, parameters, *chunk), rows), None

    return jax.lax.scan(step, jnp.zeros_like(rows), chunks)[0]


@compiled_faster
def _diagonal(function: _Function, parameters: Array, chunks: Any) -> Array:
    def one(x: Array, y: Array, weight: Array) -> Array:
        def outputs(theta: Array) -> Array:
            return function.predict(theta, x[None])[0]

        predictions, transpose = jax.vjp(outputs, parameters)
        shape = predictions.shape
        unit = jnp.ones_like(weight[None])  # the loss of an example of weight 0 is no number
        curvature = jax.hessian(lambda flat: function.risk_of(flat.reshape(1, *shape), y[None], unit))(
            predictions.reshape(-1)
        )
        jacobian = jax.vmap(lambda unit: transpose(unit.reshape(shape))[0])(
            jnp.eye(predictions.size, dtype=predictions.dtype)
        )
        return weight * jnp.sum(jacobian * (curvature @ jacobian), axis=0)

    def step(total: Array, chunk: tuple[Array, Array, Array]) -> tuple[Array, None]:
        return total + jnp.sum(jax.vmap(one)(*chunk), axis=0), None

    return jax.lax.scan(step, jnp.zeros_like(parameters), chunks)[0]


@compiled_faster
def _moved_losses(function: _Function, parameters: Array, rows: Array, scale: Array, chunks: Any) -> Array:
    def total(row: Array) -> Array:
        def step(sofar: Array, chunk: tuple[Array, Array, Array]) -> tuple[Array, None]:
            return sofar + function.risk(parameters + scale * row, *chunk), None

        return jax.lax.scan(step, jnp.zeros((), parameters.dtype), chunks)[0]

    return jax.lax.map(total, rows)


def groups(model: PyTree) -> tuple[ParameterGroup, ...]:
    """The arrays by their paths, such as layers.0.weight."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_inexact_array))
    stops = np.cumsum([leaf.size for _, leaf in leaves]).tolist()
    names = [jax.tree_util.keystr(path, simple=True, separator=".") or "parameters" for path, _ in leaves]
    return tuple(map(ParameterGroup, names, [0, *stops[:-1]], stops))
