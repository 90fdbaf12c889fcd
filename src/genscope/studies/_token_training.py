r"""What the experiments of MH25 share: their two protocols, and one run of a network on token regression.

Source: mousavi2025, Figures 1 to 3 and Appendix E, and where these are silent the definitions of Sections 3 and 4.1
(protocol "text"); its public code (protocol "code").
Departures: Transformer and FFN of several lengths share one program by padding, which changes nothing but rounding.
Guarantee: exact up to the screen's probability of missing (`train.screen`); task, initialisation, training data and
test data come from separate streams.

The two differ in fourteen places; each is a setting of `Protocol`, numbered as in docs/decisions.md. Of 6 to 9 protocol
"text" has the theory's form, also where the text on the experiments has another: query and key matrices of their own in
Figure 2 (7), and a linear read-out of the RNN (9).
"""

import json
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from genscope.compilation import FASTER, ONCE, jit
from genscope.models import outputs
from genscope.models.token_attention import ScaledTokenTransformer, draw_full
from genscope.models.token_feedforward import TokenFeedForward
from genscope.models.token_recurrent import TokenRecurrent
from genscope.random import biased_bits, derived, root, stream
from genscope.refusal import Refusal
from genscope.tasks import Batch
from genscope.tasks.links import draw_link
from genscope.tasks.token_encoding import default_encoding_dim
from genscope.tasks.token_regression import Scale, TokenRegression
from genscope.train import AbstractObjective, Below, Fit, Fresh, adamw, compilations, fit

DIM = 10
BATCH = 64
CHUNK = 125  # test prompts that are evaluated together


@dataclass(frozen=True)
class Protocol:
    """Everything in which the text and the public code of mousavi2025 differ."""

    recurrent: str  # 1: the recurrent rival
    units_grow: bool  # 1: its units are 500 q, not 500
    weight_decay: float  # 2
    test_size: int  # 3
    simple_test: bool  # 4: test prompts are simple-1STR whatever is trained
    check_every: int  # 5: steps, on 1STR (the text does not say)
    check_every_simple: int  # 5: steps, on simple-1STR (the text does not say)
    scale: Scale  # 6: factor of the encodings
    scaled_attention: bool  # 7: biases, values, output projection and a root; or a full query-key matrix
    output_bias: bool  # 8: of the head network
    include_token: bool  # 9: in the recurrent states, with a linear read-out; or excluded, with a two-layer one
    shared_draw: bool  # 10: link and encodings are shared by the runs of a draw (the text does not say)
    block_simple: bool  # 11: Figure 2 trains on simple-1STR
    budget: int  # 12: samples at which a run is given up (the text has none: this is ours)
    states_threshold: bool  # 13: the documented commands leave the thresholds out; both use the text's
    covers_sparsity: bool  # 14: there is no code for Figure 3


TEXT = Protocol(
    recurrent="rnn",
    units_grow=True,
    weight_decay=0.1,
    test_size=10_000,
    simple_test=False,
    check_every=10,
    check_every_simple=100,
    scale="sqrt_d_over_q",
    scaled_attention=False,
    output_bias=False,
    include_token=False,
    shared_draw=False,
    block_simple=False,
    budget=1_000_000,
    states_threshold=True,
    covers_sparsity=True,
)
CODE = Protocol(
    recurrent="gru",
    units_grow=False,
    weight_decay=0.01,
    test_size=5_000,
    simple_test=True,
    check_every=10,
    check_every_simple=100,
    scale="none",
    scaled_attention=True,
    output_bias=True,
    include_token=True,
    shared_draw=True,
    block_simple=True,
    budget=1_000_000,
    states_threshold=False,
    covers_sparsity=False,
)
PROTOCOLS = {"text": TEXT, "code": CODE}

# Recurrent kinds with their units; those of the published size grow with q where the protocol says so.
RECURRENT = {"rnn": ("rnn", 500), "gru": ("gru", 500), "lstm": ("lstm", 500), "gru-128": ("gru", 128)}
ARCHITECTURES = ("transformer", "ffn", *RECURRENT)


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


def settings(protocol: str, architecture: str) -> Protocol:
    """The protocol of that name, once the names make sense."""
    if protocol not in PROTOCOLS or architecture not in ARCHITECTURES:
        raise Refusal(
            f"got {protocol=}, {architecture=}: protocols are {', '.join(PROTOCOLS)}, architectures "
            f"{', '.join(ARCHITECTURES)}. Choose among these."
        )
    return PROTOCOLS[protocol]


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
        kind = ScaledTokenTransformer.draw if protocol.scaled_attention else draw_full
        return kind(key, dim=dim, heads=q, output_bias=protocol.output_bias, used=used)
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
        output_bias=protocol.output_bias,
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
    fields = {"shared_positions": simple, "scale": protocol.scale}
    task = draw_task(of_task, length, encoding_dim, shape=shape, link=link, **fields)
    return task, draw_model(init_key, task, encoding_dim, architecture=architecture, protocol=protocol)


@partial(jit, static_argnames="protocol", compiler_options=FASTER)
def _draw_test(key: Key[Array, ""], task: TokenRegression, *, protocol: Protocol) -> tuple[Batch, Array]:
    examples = (task.simple() if protocol.simple_test else task).sample(key, protocol.test_size)
    guess = jax.vmap(task.guess)(examples.x)[:, None]
    products = examples.y**2, examples.y * guess, jnp.broadcast_to(guess**2, examples.y.shape)
    return examples, jnp.stack([position_mean(values, task) for values in products])


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
    sparsity: int = 1,
    link: str = "linear",
    simple: bool = False,
    share_up_to: int = 0,
    exact: bool = False,
    objective: Callable[[TokenRegression], AbstractObjective] = PromptLoss,
) -> dict[str, Any]:
    """Samples until the test error is below the threshold, as a record.

    Link and encodings follow from `draw` alone where the protocol shares them among runs.
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

    def course(prepared: Prepared) -> tuple[Any, Fresh, AbstractObjective, tuple[int, Below]]:
        check = Below(threshold, prepared.test, controls=prepared.controls, chunk=CHUNK, exact=exact)
        source = Fresh(prepared.task, stream(key, "data"), BATCH)
        return prepared.model, source, objective(prepared.task), (limit, check)

    if shape.padded:
        programs = lambda empty: compilations(*course(empty), **options)  # noqa: E731
        prepared = begin_compiling((*choices.items(), objective, every), begin, programs)
    else:
        prepared = begin()
    run = fit(*course(prepared), **options)
    return record(run, prepared, context_length, protocol)


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


def record(run: Fit, prepared: Prepared, context_length: int, protocol: Protocol) -> dict[str, Any]:
    """What every run of these studies says about itself; `samples` is a lower limit where not `reached`."""
    rows = np.asarray(prepared.task.encoding)[:context_length]  # on the host: JAX would compile this for every length
    products = (rows @ rows.T)[~np.eye(context_length, dtype=bool)]
    return {
        "samples": run.samples,
        "reached": run.reached,
        "diverged": run.diverged,
        "risk": run.checks[-1].mean,
        "checks": len(run.checks),
        "checks_skipped": sum(check.seen < len(prepared.test.y) for check in run.checks),
        "prompts_evaluated": sum(check.seen for check in run.checks),
        "encoding_gap": 1 - float(products.max()),
        "loss_curve": np.asarray(run.losses)[::10],
        "settings": json.dumps(asdict(protocol)),
    }
