r"""One run of a network on token regression: samples until its test error is below the published threshold, and until
it is below one that only a network which reads the index can pass.

Source: mousavi2025, Figures 1 to 3 and Appendix E.
Departures: a second threshold, `RELATIVE` times the risk 1 - 1/N of the best predictor that ignores the index: the
published ones lie above that risk for small N. Transformer and FFN of several lengths share one program by padding,
which changes nothing but rounding.
Guarantee: exact up to the screen's probability of missing (`train.screen`); task, initialization, training data and
test data come from separate streams.
"""

import json
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from genscope.compilation import FASTER, ONCE, jit
from genscope.measure.index_share import index_share
from genscope.models import outputs
from genscope.models.token_attention import ProjectedTokenTransformer, ScaledTokenTransformer, draw_full
from genscope.models.token_feedforward import TokenFeedForward
from genscope.models.token_recurrent import TokenRecurrent
from genscope.random import biased_bits, derived, root, stream
from genscope.refusal import Refusal
from genscope.studies._token_protocols import RECURRENT, Protocol
from genscope.tasks import Batch
from genscope.tasks.links import draw_link
from genscope.tasks.token_encoding import default_encoding_dim
from genscope.tasks.token_regression import TokenRegression
from genscope.train import AbstractObjective, Below, Check, Fit, Fresh, TrainingState, adamw, compilations, fit

DIM = 10
BATCH = 64
CHUNK = 125  # test prompts that are evaluated together
RELATIVE = 0.75  # of the risk of a predictor that ignores the index
DRAWS = {"scaled": ScaledTokenTransformer.draw, "separate": ProjectedTokenTransformer.draw, "full": draw_full}


class Shape(NamedTuple):
    """Sizes that a compiled program is made for; `padded` if tasks may be smaller."""

    tokens: int
    encoding_dim: int
    sparsity: int
    padded: bool

    @property
    def embedding_dim(self) -> int:
        """The dimension of an encoded token."""
        return DIM + (self.sparsity + 1) * self.encoding_dim


def shape_of(architecture: str, context_length: int, sparsity: int, share_up_to: int) -> Shape:
    """The shape of a run: shared by all lengths up to a limit where padding costs less than compiling."""
    shared = architecture in ("transformer", "ffn") and context_length <= share_up_to
    tokens = share_up_to if shared else context_length
    return Shape(tokens, default_encoding_dim(tokens), sparsity, shared)


class PromptLoss(AbstractObjective):
    """Squared error of each prompt, averaged over its real positions."""

    task: TokenRegression

    def losses(self, model: Any, batch: Batch) -> Float[Array, " size"]:
        """Of each prompt."""
        return position_mean((predict(model, self.task, batch.x) - batch.y) ** 2, self.task)


def predict(model: Any, task: TokenRegression, prompts: Float[Array, "size N row"]) -> Float[Array, "size N"]:
    """Predictions for prompts."""
    return outputs(model, jax.vmap(task.encoded)(prompts), real=task.real)


def position_mean(values: Float[Array, "size N"], task: TokenRegression) -> Float[Array, " size"]:
    """Mean over the real positions."""
    if task.real is None or task.length is None:
        return jnp.mean(values, axis=1)
    return jnp.sum(jnp.where(task.real[None], values, 0), axis=1) / task.length.astype(values.dtype)


def task_keys(key: Key[Array, ""], context_length: int) -> tuple[Key[Array, ""], Key[Array, ""]]:
    """Keys of the encodings, which depend on the length, and of the link, which does not; `draw_task` takes them."""
    # Outside of compiled programs: each derivation of a key inside of one costs a tenth of a second of compilation.
    return derived(stream(key, "encoding"), context_length), stream(key, "link")


def draw_task(
    keys: tuple[Key[Array, ""], Key[Array, ""]],
    length: Int[Array, ""],
    encoding_dim: Int[Array, ""],
    *,
    shape: Shape,
    link: str,
    **fields: Any,
) -> TokenRegression:
    """A task of traced length in a fixed shape."""
    signs = biased_bits(keys[0], (shape.tokens, shape.encoding_dim), 0.5)
    kept = jnp.outer(jnp.arange(shape.tokens) < length, jnp.arange(shape.encoding_dim) < encoding_dim)
    rows = jnp.where(signs, 1.0, -1.0) / jnp.sqrt(encoding_dim.astype("float32"))
    drawn = draw_link(link, keys[1], sparsity=shape.sparsity, dim=DIM)
    return TokenRegression(jnp.where(kept, rows, 0), drawn, length=length if shape.padded else None, **fields)


def draw_model(
    key: Key[Array, ""], task: TokenRegression, encoding_dim: Int[Array, ""], *, architecture: str, protocol: Protocol
) -> Any:
    """A network of the published size for a task."""
    n, columns = task.encoding.shape
    dim, q = task.embedding_dim, task.sparsity
    used = None
    if task.length is not None:
        used = jnp.concatenate([jnp.ones(DIM, bool), jnp.tile(jnp.arange(columns) < encoding_dim, q + 1)])
    if architecture == "transformer":
        draw = DRAWS[protocol.attention]
        return draw(key, dim=dim, heads=q, output_bias=protocol.output_bias, used=used)
    if architecture == "ffn":
        units = None if task.length is None else jnp.arange(n * DIM * q) < task.length * DIM * q
        sizes = {"context_length": n, "dim": dim, "first": n * DIM * q}
        return TokenFeedForward.draw(key, **sizes, used=used, real=task.real, units=units)
    kind, units = RECURRENT[architecture]
    return TokenRecurrent.draw(
        key,
        kind=kind,
        dim=dim,
        units=units * (q if protocol.units_grow else 1),
        include_token=protocol.include_token,
        output_bias=protocol.include_token,  # a linear read-out has one, as the public code's
    )


class Prepared(NamedTuple):
    """A task, an untrained network and a test set, with what a screen knows of each of its prompts."""

    task: TokenRegression
    model: Any
    test: Batch
    controls: Float[Array, "K M"]


def prepare(
    of_task: tuple[Key[Array, ""], Key[Array, ""]],
    init_key: Key[Array, ""],
    test_key: Key[Array, ""],
    length: Int[Array, ""] | np.int32,
    encoding_dim: Int[Array, ""] | np.int32,
    *,
    protocol: Protocol,
    call: Callable[..., Any] = lambda program, *arguments, **options: program(*arguments, **options),
    **choices: Any,
) -> Prepared:
    """All that a run starts from; by one program for the few numbers, and one for the test set, each through `call`."""
    task, model = call(_draw_both, of_task, init_key, length, encoding_dim, protocol=protocol, **choices)
    return Prepared(task, model, *call(_draw_test, test_key, task, protocol=protocol))


@partial(
    jit,
    static_argnames=("shape", "architecture", "protocol", "link", "simple"),
    compiler_options=ONCE,
)
def _draw_both(
    of_task: tuple[Key[Array, ""], Key[Array, ""]],
    init_key: Key[Array, ""],
    length: Int[Array, ""],
    encoding_dim: Int[Array, ""],
    *,
    shape: Shape,
    architecture: str,
    protocol: Protocol,
    link: str,
    simple: bool,
) -> tuple[TokenRegression, Any]:
    fields = {"shared_positions": simple, "scale": protocol.scale_for(architecture)}
    task = draw_task(of_task, length, encoding_dim, shape=shape, link=link, **fields)
    return task, draw_model(init_key, task, encoding_dim, architecture=architecture, protocol=protocol)


@partial(jit, static_argnames="protocol", compiler_options=FASTER)
def _draw_test(key: Key[Array, ""], task: TokenRegression, *, protocol: Protocol) -> tuple[Batch, Array]:
    examples = (task.simple() if protocol.simple_test else task).sample(key, protocol.test_size)
    guess = jax.vmap(task.guess)(examples.x)[:, None]
    products = examples.y**2, examples.y * guess, jnp.broadcast_to(guess**2, examples.y.shape)
    return examples, jnp.stack([position_mean(values, task) for values in products])


class SamplesAtLevel(NamedTuple):
    """The first check below a threshold: samples so far, and what share of the predictions depends on the index."""

    samples: int
    index_share: float | None


class Crossings:
    """Ends a run once its test error has been below each threshold, the largest first, and notes when that was.

    `look` says what share of a network's predictions depends on the index; without it nobody asks.
    """

    name = "below"

    def __init__(self, rules: dict[str, Below], look: Callable[[Any], float] | None):
        self._rules, self._look = rules, look
        self._waiting = sorted(rules, key=lambda name: -float(rules[name].threshold))
        self.checks: list[Check] = []
        self.found: dict[str, SamplesAtLevel] = {}

    def __call__(self, progress: TrainingState) -> bool:
        """A check; below the largest threshold that is left, the next one is asked at once."""
        while self._waiting:
            self.checks.append(self._rules[self._waiting[0]](progress))
            if not self.checks[-1]:
                return False
            self.found[self._waiting.pop(0)] = SamplesAtLevel(progress.samples, self._index_share(progress.model))
        return True

    def index_share_at_end(self, run: Fit) -> float | None:
        """Of the network that a run left, below its last threshold or wherever the budget ended it."""
        if run.reached:
            return list(self.found.values())[-1].index_share
        return self._index_share(run.model)

    def _index_share(self, model: Any) -> float | None:
        return None if self._look is None else self._look(model)

    def program(self, progress: TrainingState, lower: bool = False) -> tuple[Callable[..., Any], Any]:
        """The one program of all checks."""
        return next(iter(self._rules.values())).program(progress, lower)


def blind_risk(context_length: int) -> float:
    r"""The least risk without the index: $\mathrm{Var}(y)-\mathrm{Var}\,\mathbb E[y\mid x]=1-1/N$.

    For the links of the experiments, sums over j of $g_j(x_{t_j})/\sqrt q$ with $\mathbb E\,g_j=0$ and variance 1,
    whatever q: terms of one pair j, k add the same to both variances.
    """
    return 1 - 1 / context_length


def measure(
    key: Key[Array, ""],
    *,
    architecture: str,
    context_length: int,
    protocol: Protocol,
    draw: int,
    threshold: float,
    rate: float,
    every: int,
    until: str = "published",
    sparsity: int = 1,
    link: str = "linear",
    simple: bool = False,
    share_up_to: int = 0,
    exact: bool = False,
    asks_for_index: bool = True,
    objective: Callable[[TokenRegression], AbstractObjective] = PromptLoss,
) -> dict[str, Any]:
    """Samples until the test error is below a threshold, as a record.

    `until` is "published", for the given threshold alone, "relative", for the one relative to `blind_risk`, or "both".
    Link and encodings follow from `draw` alone where the protocol shares them among runs. Unless `asks_for_index`,
    nothing is computed beyond what the paper's runs compute.
    """
    shape = shape_of(architecture, context_length, sparsity, share_up_to)
    choices = {"shape": shape, "architecture": architecture, "protocol": protocol, "link": link, "simple": simple}

    task_key = stream(root(draw), "draw") if protocol.shared_draw else stream(key, f"draw {draw}")
    keys = task_keys(task_key, context_length), stream(key, "init"), stream(key, "test")
    sizes = np.int32(context_length), np.int32(default_encoding_dim(context_length))
    begin = partial(prepare, *keys, *sizes, **choices)
    limit = protocol.budget // (BATCH * every) * every  # whole checks
    optimizer = adamw(rate, weight_decay=protocol.weight_decay)
    options: dict[str, Any] = {"optimizer": optimizer, "every": every, "brief": architecture == "transformer"}
    named = {"published": threshold, "relative": RELATIVE * blind_risk(context_length)}
    wanted = {name: value for name, value in named.items() if until in (name, "both")}
    if not wanted:
        raise Refusal(f"got {until=}: a run lasts until {', '.join(named)} or both. Choose one of these.")

    def course(prepared: Prepared) -> tuple[Any, Fresh, AbstractObjective, tuple[int, Crossings]]:
        rules = {
            name: Below(value, prepared.test, controls=prepared.controls, chunk=CHUNK, exact=exact)
            for name, value in wanted.items()
        }
        look = partial(_index_share, task=prepared.task, key=stream(key, "index"), protocol=protocol)
        crossings = Crossings(rules, (lambda model: float(look(model))) if asks_for_index else None)
        source = Fresh(prepared.task, stream(key, "data"), BATCH)
        return prepared.model, source, objective(prepared.task), (limit, crossings)

    if shape.padded:

        def programs(empty):
            return compilations(*course(empty), **options)

        prepared = begin_compiling((*choices.items(), objective, every), begin, programs)
    else:
        prepared = begin()
    model, source, loss, until_then = course(prepared)
    run = fit(model, source, loss, until_then, **options)
    return record(run, until_then[1], prepared, context_length, protocol)


@partial(jit, static_argnames="protocol", compiler_options=FASTER)
def _index_share(model: Any, *, task: TokenRegression, key: Key[Array, ""], protocol: Protocol) -> Array:
    asked = task.simple() if protocol.simple_test else task
    return index_share(lambda prompts: predict(model, asked, prompts), asked, key)


_COMPILED: set[Hashable] = set()
_COMPILING = Lock()


def begin_compiling(
    name: Hashable, begin: Callable[..., Prepared], programs: Callable[..., tuple[Callable[[], Any], ...]]
) -> Prepared:
    """Begin a run; the first of that name also compiles its `programs`, at the same time.

    Other workers with the same programs wait for them, since each would compile its own otherwise.
    """
    with _COMPILING:
        if name not in _COMPILED:
            prepared = _compile_and_begin(begin, programs)
            _COMPILED.add(name)
            return prepared
    return begin()


def _compile_and_begin(
    begin: Callable[..., Prepared], programs: Callable[..., tuple[Callable[[], Any], ...]]
) -> Prepared:
    drawing: list[Future] = []
    with ThreadPoolExecutor() as beside:

        def compile_beside(program, *arguments, **options):
            traced = program.lower(*arguments, **options)
            drawing.append(beside.submit(traced.compile))
            return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), traced.out_info)

        empty = begin(call=compile_beside)
        compiling = [beside.submit(program) for program in programs(empty)]
        wait(drawing)
        prepared = begin()
        for compiled in (*drawing, *compiling):
            compiled.result()
    return prepared


def record(
    run: Fit, crossings: Crossings, prepared: Prepared, context_length: int, protocol: Protocol
) -> dict[str, Any]:
    """What every run of these studies says about itself; `samples` is a lower limit where not `reached`.

    Of a threshold that the run did not wait for nothing is known but that limit.
    """
    rows = np.asarray(prepared.task.encoding)[:context_length]  # on the host: JAX would compile this for every length
    products = (rows @ rows.T)[~np.eye(context_length, dtype=bool)]
    checks, crossed = crossings.checks, {}
    for name, suffix in (("published", ""), ("relative", "_relative")):
        crossing = crossings.found.get(name)
        crossed[f"samples{suffix}"] = run.samples if crossing is None else crossing.samples
        crossed[f"reached{suffix}"] = crossing is not None
        crossed[f"index_share{suffix}"] = None if crossing is None else crossing.index_share
    return crossed | {
        "index_share_at_end": crossings.index_share_at_end(run),
        "diverged": run.diverged,
        "risk": checks[-1].mean,
        "relative_threshold": RELATIVE * blind_risk(context_length),
        "checks": len(checks),
        "checks_skipped": sum(check.seen < len(prepared.test.y) for check in checks),
        "prompts_evaluated": sum(check.seen for check in checks),
        "encoding_gap": 1 - float(products.max()),
        "loss_curve": np.asarray(run.losses)[::10],
        "settings": json.dumps(asdict(protocol)),
    }
