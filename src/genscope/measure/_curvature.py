r"""Products with the Hessian and the Gauss–Newton matrix of a model's mean loss, parameters in one flat vector.

With the loss $L(\theta)=\frac1n\sum_i\ell(f_\theta(x_i),y_i)$,
$$\nabla^2L=\underbrace{\frac1n\sum_iJ_i^\top\nabla^2\ell_i\,J_i}_{\text{Gauss–Newton}}
+\frac1n\sum_i\sum_o\partial_o\ell_i\,\nabla^2f_o(x_i).$$

Source: lintilhac2026, Section 2.2; Pearlmutter 1994 (products by forward over reverse differentiation).
Guarantee: exact up to rounding. Memory is that of one chunk of examples and of the vectors, whatever the sample size:
inputs in a mapped file are read block by block.
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
from genscope.train.loss import IGNORED, Loss
from genscope.train.objective import Predict, by_example

GRADIENT_NUMBERS = 2**24  # of gradients of single examples that are held at a time: 64 MB in float32
INPUT_NUMBERS = 2**26  # of inputs that are given to a program at a time
OUTPUTS = 2048  # of an example at most, where the loss has a dense Hessian in them
PART = 16  # examples that share a random vector, where each part of the sample has its own


class ParameterGroup(NamedTuple):
    """A name and its place in the flat vector."""

    name: str
    start: int
    stop: int
    shape: tuple[int, ...]


class Curvature:
    """A model at its data: the flat parameters, their groups, and products with matrices of second derivatives."""

    def __init__(self, model: PyTree, batch: Batch, loss: Loss, *, chunk: int, predict: Predict | None):
        """Split the model and cut the examples into chunks."""
        if chunk < 1:
            raise Refusal(f"got {chunk=}: a chunk must hold at least one example. Give 1 or more.")
        parameters, self._rest = eqx.partition(model, eqx.is_inexact_array)
        leaves = jax.tree_util.tree_leaves_with_path(parameters)
        if not leaves or any(jnp.iscomplexobj(leaf) for _, leaf in leaves):
            raise Refusal(
                f"got a {type(model).__name__} with {len(leaves)} arrays of real or complex numbers: sharpness needs "
                "at least one parameter, and real ones only. Give a model whose weights are floating-point arrays, or "
                "a PyTorch module some of whose parameters require a gradient."
            )
        self._double = any(leaf.dtype == np.float64 for _, leaf in leaves)
        self._loss, self._predict = loss, predict
        with self.precision():
            self.parameters, self._unravel = ravel_pytree(parameters)
            self._x, self._y, self._weight = batch.x, batch.y, batch.weight
            self._shape = self._output_shape()
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
            return self._summed(lambda chunks: _accumulated(linear_map, function, self.parameters, rows, chunks))

    def gauss_newton_diagonal(self) -> np.ndarray:
        """Diagonal of the Gauss–Newton matrix, from the gradients of every example."""
        number = self.outputs
        if number > OUTPUTS:
            raise Refusal(
                f"got a model with {number} outputs per example for the exact Gauss–Newton matrix, which takes one "
                f"gradient per output: at most {OUTPUTS} are allowed. Use the method fisher, which estimates the same "
                "trace, or xnystrace."
            )
        with self.precision():
            function, most = self._function(), self._by_gradient(number)
            return self._summed(lambda chunks: _diagonal(function, self.parameters, chunks), most)

    def fisher(self, key: Array, draws: int) -> np.ndarray:
        """For each draw of labels from the model's own law, and each group: mean square of the examples' gradients."""
        return self.fisher_parts(key, draws, self._chunk).sum(axis=0)

    def fisher_parts(self, key: Array, draws: int, most: int = PART) -> np.ndarray:
        """The same for every part of at most so many examples: parts, draws and groups."""
        if self._loss.draw is None:
            raise Refusal(
                f"got the {self._loss.name} loss with the method fisher: it draws labels from the distribution whose "
                "negative log-likelihood is the loss, which exists for squared, logistic and cross-entropy. Use one of "
                "these, or the method gauss_newton."
            )
        starts = tuple(group.start for group in self.groups)
        with self.precision():
            function, found = self._function(), []
            for number, chunks in enumerate(self._blocks(min(most, self._by_gradient(1)))):
                keys = jax.random.split(jax.random.fold_in(key, number), draws)
                found.append(np.asarray(_fisher(function, self.parameters, keys, chunks, starts), float))
            return np.concatenate(found, axis=1).swapaxes(0, 1)

    def residual_parts(self, key: Array, colors: np.ndarray, draws: int) -> np.ndarray:
        r"""$\sum_c(v_c\circ Rv_c)$ summed over each group, for the Hessian less the Gauss–Newton matrix, R.

        Every part of the sample and every draw has a sign vector v of its own; $v_c$ is v on the groups of color c and
        0 elsewhere, so that blocks between colors do not disturb. Parts, draws and groups.
        """
        starts = tuple(group.start for group in self.groups)
        sizes = [group.stop - group.start for group in self.groups]
        with self.precision():
            function, found = self._function(), []
            of_each = jnp.asarray(np.repeat(colors, sizes).astype(np.int32))
            for number, chunks in enumerate(self._blocks(min(self._chunk, PART))):
                keys = jax.random.split(jax.random.fold_in(key, number), len(chunks[1]) * draws)
                keys = keys.reshape(len(chunks[1]), draws)
                masks = int(colors.max()) + 1, of_each
                found.append(np.asarray(_residual(function, self.parameters, keys, masks, chunks, starts), float))
            return np.concatenate(found)

    @property
    def outputs(self) -> int:
        """Numbers that the model gives for an example."""
        return max(1, math.prod(self._shape[1:]))

    @property
    def draws_labels(self) -> bool:
        """Whether the loss is the negative logarithm of a law that labels can be drawn from."""
        return self._loss.draw is not None

    def losses(self, displacements: np.ndarray, scale: float = 1.0) -> np.ndarray:
        r"""$L(\theta+\text{scale}\cdot v)$ for every row v."""
        with self.precision():
            rows = jnp.asarray(displacements, self.parameters.dtype)
            moved, function = jnp.asarray(scale, self.parameters.dtype), self._function()
            return self._summed(lambda chunks: _moved_losses(function, self.parameters, rows, moved, chunks))

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
            slope.lower(function, self.parameters, jax.tree.map(lambda part: jnp.asarray(part[:1]), self._x))
        except TypeError:  # JAX's, of a form with a gradient of its own
            return dataclasses.replace(function, predictor=by_example)
        return function

    def _by_gradient(self, number: int) -> int:
        """Examples at a time where each has so many gradients."""
        return min(self._chunk, max(1, GRADIENT_NUMBERS // (self.size * number)))

    def _summed(self, program: Callable[[Any], Array], most: int | None = None) -> np.ndarray:
        """What a program makes of the chunks of examples, over all blocks of them."""
        return sum(np.asarray(program(chunks), float) for chunks in self._blocks(most or self._chunk))  # pyright: ignore[reportReturnType]

    def _blocks(self, most: int) -> Iterator[tuple[PyTree, Array, Array]]:
        """Examples as equal chunks, as many at a time as memory allows.

        Those that fill up the last have weight 0, and weights sum to 1 over all.
        """
        size = len(self._y)
        number = -(-size // most)
        length = -(-size // number)
        numbers = sum(math.prod(part.shape[1:]) for part in jax.tree.leaves(self._x))
        blocks = -(-number // max(1, INPUT_NUMBERS // max(1, length * numbers)))
        together = -(-number // blocks)
        each = np.full(size, 1 / size) if self._weight is None else np.asarray(self._weight, float)
        for first in range(0, blocks * together, together):
            rows = np.arange(first * length, (first + together) * length)
            index = np.minimum(rows, size - 1)  # a copy of a real example: its numbers are finite
            weight = np.where(rows < size, each[index] / each.sum(), 0.0).reshape(together, length)
            x, y = jax.tree.map(
                lambda part, index=index: jnp.asarray(part[index]).reshape(together, length, *part.shape[1:]),
                (self._x, self._y),
            )
            yield x, y, jnp.asarray(weight, self.parameters.dtype)

    def _output_shape(self) -> tuple[int, ...]:
        sizes = {len(part) for part in jax.tree.leaves(self._x)}
        if sizes != {len(self._y)} or len(self._y) < 1:
            raise Refusal(
                f"got {', '.join(map(str, sorted(sizes)))} inputs and {len(self._y)} labels: there must be one label "
                "for every input, and at least one example. Give x and y of the same length."
            )
        if self._weight is not None and not (np.all(np.asarray(self._weight) >= 0) and np.any(self._weight)):
            raise Refusal(
                "got example weights that are negative, or all 0: a weight says how much an example counts. Give "
                "positive weights, or none."
            )
        shape = jax.eval_shape(
            lambda parameters, x: self._function().predict(parameters, x),
            self.parameters,
            jax.tree.map(lambda part: jax.ShapeDtypeStruct(part.shape, jnp.asarray(part[:0]).dtype), self._x),
        ).shape
        self._loss.check(shape, self._y)
        return shape


class _Function(eqx.Module):
    """The model as a function of its flat parameters."""

    rest: PyTree
    unravel: Callable[[Array], PyTree] = eqx.field(static=True)
    loss: Loss = eqx.field(static=True)
    predictor: Predict = eqx.field(static=True)

    def predict(self, parameters: Float[Array, " p"], x: PyTree[Shaped[Array, "m ..."]]) -> Float[Array, "m ..."]:
        return self.predictor(eqx.combine(self.unravel(parameters), self.rest), x)

    def risk_of(self, predictions: Array, y: Array, weight: Float[Array, " m"]) -> Float[Array, ""]:
        """The part of these examples in the mean loss, whose weights sum to 1 over all examples."""
        return jnp.sum(self.loss(predictions, y) * weight.astype(predictions.dtype))

    def risk(self, parameters: Float[Array, " p"], x: PyTree, y: Array, weight: Array) -> Float[Array, ""]:
        return self.risk_of(self.predict(parameters, x), y, weight).astype(parameters.dtype)


def _slope(function: _Function, parameters: Float[Array, " p"], x: PyTree) -> Any:
    return jax.jvp(lambda theta: function.predict(theta, x), (parameters,), (parameters,))


def _hessian_map(
    function: _Function, parameters: Array, x: PyTree, y: Array, weight: Array
) -> Callable[[Array], Array]:
    """The gradient linearized once, for any number of vectors."""
    return jax.linearize(lambda theta: jax.grad(function.risk)(theta, x, y, weight), parameters)[1]


def _gauss_newton_map(
    function: _Function, parameters: Array, x: PyTree, y: Array, weight: Array
) -> Callable[[Array], Array]:
    predictions, jvp = jax.linearize(lambda theta: function.predict(theta, x), parameters)
    transpose = jax.linear_transpose(jvp, parameters)
    slope = jax.linearize(jax.grad(lambda outputs: function.risk_of(outputs, y, weight)), predictions)[1]
    return lambda vector: transpose(slope(jvp(vector)))[0]


@compiled_faster
def _accumulated(linear_map: Callable[..., Any], function: _Function, parameters: Array, rows: Array, chunks: Any):
    """Sum over chunks of the linear map of each, at every row."""

    def step(total: Array, chunk: tuple[PyTree, Array, Array]) -> tuple[Array, None]:
        return total + jax.lax.map(linear_map(function, parameters, *chunk), rows), None

    return jax.lax.scan(step, jnp.zeros_like(rows), chunks)[0]


@compiled_faster
def _diagonal(function: _Function, parameters: Array, chunks: Any) -> Array:
    def one(x: PyTree, y: Array, weight: Array) -> Array:
        def outputs(theta: Array) -> Array:
            return function.predict(theta, _alone(x))[0]

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

    def step(total: Array, chunk: tuple[PyTree, Array, Array]) -> tuple[Array, None]:
        return total + jnp.sum(jax.vmap(one)(*chunk), axis=0), None

    return jax.lax.scan(step, jnp.zeros_like(parameters), chunks)[0]


@compiled_faster
def _fisher(function: _Function, parameters: Array, keys: Array, chunks: Any, starts: tuple[int, ...]) -> Array:
    """For each key, chunk and group: the sum of the examples' squared gradients at labels that the model draws."""
    draw = function.loss.draw
    assert draw is not None

    def one(key: Array, x: PyTree, y: Array, weight: Array) -> Array:
        def loss(theta: Array) -> Array:
            outputs = function.predict(theta, _alone(x))
            labels = draw(key, jax.lax.stop_gradient(outputs)).astype(y.dtype if by_class else outputs.dtype)
            return function.loss(outputs, jnp.where(counts[None], labels, y[None].astype(labels.dtype)))[0]

        by_class = function.loss.labels == "classes"
        counts = y != IGNORED if by_class else jnp.ones(y.shape, bool)
        # The loss is a mean over independent labels, whose scores have mean 0: their number times its squared gradient.
        square = jnp.sum(counts).astype(weight.dtype) * jax.grad(loss)(parameters).astype(weight.dtype) ** 2
        return weight * _by_group(square, starts)

    def parts(key: Array) -> Array:
        def step(number: Array, chunk: tuple[PyTree, Array, Array]) -> tuple[Array, Array]:
            each = jax.random.split(jax.random.fold_in(key, number), len(chunk[1]))
            return number + jnp.uint32(1), jnp.sum(jax.vmap(one)(each, *chunk), axis=0)

        return jax.lax.scan(step, jnp.uint32(0), chunks)[1]

    return jax.lax.map(parts, keys)


@compiled_faster
def _residual(
    function: _Function,
    parameters: Array,
    keys: Array,
    masks: tuple[int, Array],
    chunks: Any,
    starts: tuple[int, ...],
) -> Array:
    """For each chunk, key and group: the sum over colors of v times the product with it, v the signs of that color."""
    number, colors = masks

    def step(_: None, chunk: tuple[Array, tuple[PyTree, Array, Array]]) -> tuple[None, Array]:
        linear = _residual_map(function, parameters, *chunk[1])

        def one(key: Array) -> Array:
            signs = _signs(key, parameters)

            def add(total: Array, color: Array) -> tuple[Array, None]:
                vector = jnp.where(colors == color, signs, jnp.zeros_like(signs))
                return total + vector * linear(vector), None

            terms = jax.lax.scan(add, jnp.zeros_like(parameters), jnp.arange(number, dtype=jnp.int32))[0]
            return _by_group(terms, starts)

        return None, jax.lax.map(one, chunk[0])

    return jax.lax.scan(step, None, (keys, chunks))[1]


def _residual_map(
    function: _Function, parameters: Array, x: PyTree, y: Array, weight: Array
) -> Callable[[Array], Array]:
    """The Hessian of the outputs, weighted with the slopes of the loss at them."""
    predictions = function.predict(parameters, x)
    slopes = jax.grad(lambda outputs: function.risk_of(outputs, y, weight))(predictions)

    def linear_risk(theta: Array) -> Array:
        return jnp.sum(slopes * function.predict(theta, x)).astype(theta.dtype)

    return jax.linearize(jax.grad(linear_risk), parameters)[1]


def _signs(key: Array, like: Array) -> Array:
    """Random signs, 32 of a word."""
    words = jax.random.bits(key, (-(-like.size // 32), 1), jnp.uint32)
    bits = (words >> jnp.arange(32, dtype=jnp.uint32)[None]) & jnp.uint32(1)
    return 2 * bits.reshape(-1)[: like.size].astype(like.dtype) - 1


def _by_group(terms: Array, starts: tuple[int, ...]) -> Array:
    bounds = zip(starts, [*starts[1:], terms.size], strict=True)
    return jnp.stack([jnp.sum(terms[start:stop]) for start, stop in bounds])


def _alone(x: PyTree) -> PyTree:
    """A batch of one example."""
    return jax.tree.map(lambda part: part[None], x)


@compiled_faster
def _moved_losses(function: _Function, parameters: Array, rows: Array, scale: Array, chunks: Any) -> Array:
    def total(row: Array) -> Array:
        def step(sofar: Array, chunk: tuple[PyTree, Array, Array]) -> tuple[Array, None]:
            return sofar + function.risk(parameters + scale * row, *chunk), None

        return jax.lax.scan(step, jnp.zeros((), parameters.dtype), chunks)[0]

    return jax.lax.map(total, rows)


def groups(model: PyTree) -> tuple[ParameterGroup, ...]:
    """The arrays by their paths, such as layers.0.weight."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_inexact_array))
    stops = np.cumsum([leaf.size for _, leaf in leaves]).tolist()
    names = [jax.tree_util.keystr(path, simple=True, separator=".") or "parameters" for path, _ in leaves]
    return tuple(map(ParameterGroup, names, [0, *stops[:-1]], stops, (leaf.shape for _, leaf in leaves)))
