"""Fig. 1a of token regression end to end against the public code's protocol written plainly in PyTorch; one step.

Peer: one run after the other on all cores, fresh batches of 64, an evaluation of 5,000 test prompts every ten steps.
Ours: the runs of `mousavi2025-1str`, ended at the published threshold as the peer's are, one per core, compilation
included, in a process of its own, because a warm one would have nothing to compile. The peer takes as many steps as our
runs took, with an evaluation after every ten; of recurrent networks a tenth of them, scaled up. Short curves are
measured before, amid and after the peer's runs, since the speed of shared machines drifts. Both are given in seconds
and in seconds of the processors: on a busy machine only the latter mean something, and only with one core for both
(`taskset -c 0`). The step is measured against the arithmetic limit: the multiply-adds of the network as it is defined,
and those that its shortcut does, at the rate of large matrix products.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from benchmarks._timing import best_seconds, show

LENGTHS = (2, 4, 6, 8, 10, 12)
CORES = len(os.sched_getaffinity(0))
DIM, BATCH, TEST, EVERY = 10, 64, 5000, 10
REQUIRED = {"transformer": 8, "ffn": 4, "gru": 3, "rnn": 3}


class Curve(NamedTuple):
    """What is measured: lengths, runs at each, how often, and the share of the peer's steps that stands for all."""

    lengths: Sequence[int]
    runs: int
    times: int = 3
    share: float = 1.0


# The recurrent curves take minutes: their ratio is measured at some lengths, with runs for two cores.
CURVES = {
    "transformer": Curve(LENGTHS, 5),
    "ffn": Curve(LENGTHS, 5),
    "gru": Curve((4, 8), 2, times=1, share=0.1),
    "rnn": Curve((4, 8, 12), 2, times=1, share=0.1),
}


class Seconds(NamedTuple):
    """By the clock on the wall, and of the processors."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> "Seconds":
        """Both clocks."""
        return cls(time.perf_counter(), time.process_time())

    def less(self, start: "Seconds") -> "Seconds":
        """From the start to these."""
        return Seconds(self.wall - start.wall, self.cpu - start.cpu)

    def plus(self, others: "Seconds", factor: float = 1.0) -> "Seconds":
        """These, and so many times the others."""
        return Seconds(self.wall + factor * others.wall, self.cpu + factor * others.cpu)


def ours(architecture: str, lengths: Sequence[int], runs: int) -> list[dict[str, Any]]:
    """Length and samples of every run; called in a fresh process."""
    from genscope.random import root
    from genscope.studies._token_protocols import settings
    from genscope.studies._token_training import measure
    from genscope.studies.mousavi2025_1str import LENGTHS, RATE, THRESHOLD

    protocol = settings("code", architecture)
    # As far as the paper's runs, and no more than they compute.
    end = {"threshold": THRESHOLD, "every": protocol.check_every, "until": "published", "asks_for_index": False}

    def one(point: tuple[int, int]) -> dict[str, Any]:
        length, run = point
        sizes = {"architecture": architecture, "context_length": length, "share_up_to": LENGTHS[-1]}
        record = measure(root(run), **sizes, protocol=protocol, draw=0, rate=RATE, **end)
        return {"length": length, "samples": record["samples"], "reached": record["reached"]}

    with ThreadPoolExecutor(CORES) as pool:
        return list(pool.map(one, [(length, run) for length in reversed(lengths) for run in range(runs)]))


def fresh_seconds(architecture: str, lengths: Sequence[int], runs: int) -> tuple[Seconds, list[dict[str, Any]]]:
    """Seconds of `ours` in a process without compiled programs; its start, as the peer's, is not counted."""
    code = (
        "import json, sys, jax, genscope.studies.mousavi2025_1str\n"
        "from benchmarks.token_regression import Seconds, ours\n"
        "start = Seconds.now(); found = ours(sys.argv[1], *json.loads(sys.argv[2])); "
        "print(json.dumps([Seconds.now().less(start), found]))"
    )
    environment = os.environ | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", code, architecture, json.dumps([list(lengths), runs])],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    seconds, found = json.loads(done.stdout.splitlines()[-1])
    return Seconds(*seconds), found


def peer_network(architecture: str, length: int) -> Any:
    """The public code's network of that size, in plain PyTorch."""
    from torch import nn  # pyright: ignore[reportMissingImports]  # a peer, in the environment of `make bench`

    from genscope.tasks.token_encoding import default_encoding_dim

    width = DIM + 2 * default_encoding_dim(length)

    class Attention(nn.Module):
        """Self-attention, then a two-layer network at each token."""

        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(width, 1, batch_first=True)
            self.head = nn.Sequential(nn.Linear(width, 100), nn.ReLU(), nn.Linear(100, 1))

        def forward(self, z):
            return self.head(self.attention(z, z, z, need_weights=False)[0])[..., 0]

    class Recurrent(nn.Module):
        """Both directions, then a linear read-out at each token."""

        def __init__(self):
            super().__init__()
            kind = {"gru": nn.GRU, "rnn": nn.RNN}[architecture]
            options = {"nonlinearity": "relu"} if architecture == "rnn" else {}
            self.recurrent = kind(width, 500, batch_first=True, bidirectional=True, **options)
            self.head = nn.Linear(1000, 1)

        def forward(self, z):
            return self.head(self.recurrent(z)[0])[..., 0]

    if architecture == "transformer":
        return Attention()
    if architecture == "ffn":
        first, second = length * DIM, 1000
        return nn.Sequential(
            *(nn.Flatten(), nn.Linear(length * width, first), nn.ReLU()),
            *(nn.Linear(first, second), nn.ReLU(), nn.Linear(second, length)),
        )
    return Recurrent()


class Peer:
    """One run of the protocol: `step` trains, `evaluate` gives the test error."""

    def __init__(self, architecture: str, length: int, seed: int):
        import torch  # pyright: ignore[reportMissingImports]  # a peer

        from genscope.tasks.token_encoding import default_encoding_dim

        torch.set_num_threads(CORES)
        torch.manual_seed(seed)
        self.torch, self.length = torch, length
        size = default_encoding_dim(length)
        self.link = torch.nn.functional.normalize(torch.randn(DIM), dim=0)
        self.encoding = (2.0 * torch.randint(2, (length, size)) - 1) / size**0.5
        self.network = peer_network(architecture, length)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-3, weight_decay=0.01)
        self.test = self.draw(TEST, simple=True)

    def draw(self, size: int, *, simple: bool) -> tuple[Any, Any]:
        """Encoded prompts and labels."""
        torch, n = self.torch, self.length
        x = torch.randn(size, n, DIM)
        t = torch.randint(n, (size, 1)).expand(size, n) if simple else torch.randint(n, (size, n))
        labels = torch.gather(x @ self.link, 1, t)
        return torch.cat([x, self.encoding.expand(size, n, -1), self.encoding[t]], dim=2), labels

    def step(self) -> None:
        """Train on a fresh batch."""
        z, y = self.draw(BATCH, simple=False)
        self.optimizer.zero_grad()
        self.torch.nn.functional.mse_loss(self.network(z), y).backward()
        self.optimizer.step()

    def evaluate(self) -> float:
        """The error on all test prompts."""
        with self.torch.no_grad():
            return float(self.torch.nn.functional.mse_loss(self.network(self.test[0]), self.test[1]))

    def train(self, steps: int) -> None:
        """So many steps, with an evaluation after every ten."""
        for number in range(1, steps + 1):
            self.step()
            if number % EVERY == 0:
                self.evaluate()


def peer_seconds(architecture: str, found: list[dict[str, Any]], share: float) -> Seconds:
    """Seconds of the protocol for the same lengths and numbers of samples; a share of each run's steps is measured."""
    total = Seconds(0, 0)
    for number, run in enumerate(found):
        start = Seconds.now()
        peer = Peer(architecture, run["length"], number)
        peer.train(EVERY)  # the first steps are slow, and count once
        begun = Seconds.now()
        steps = run["samples"] // BATCH - EVERY
        measured = round(share * steps / EVERY) * EVERY
        peer.train(measured)
        total = total.plus(begun.less(start)).plus(Seconds.now().less(begun), steps / max(measured, 1))
    return total


def multiply_adds(length: int = 12) -> tuple[int, int]:
    """Of one Transformer step: as the network is defined, and by its shortcut; forward and twice back."""
    from genscope.tasks.token_encoding import default_encoding_dim

    d, tokens = DIM + 2 * default_encoding_dim(length), BATCH * length
    pairs = 2 * length * d
    defined = tokens * (3 * d * d + pairs + d * d + 100 * d + 100)
    shortcut = tokens * (d * d + pairs + 100 * d + 100) + 2 * d * d * 100 + d**3
    return 3 * defined, 3 * shortcut


def step_seconds(length: int = 12, steps: int = 50) -> float:
    """Seconds per Transformer step and trial, its batch drawn, with one trial on each core."""
    run, keys = training(length, CORES, steps)
    with ThreadPoolExecutor(CORES) as pool:
        return best_seconds(lambda: list(pool.map(run, keys))) / steps / CORES


def training(length: int, many: int, steps: int) -> tuple[Callable[..., None], list[Any]]:
    """What trains a Transformer for so many steps, and keys of its data."""
    import jax.numpy as jnp
    import jax.random as jr

    from genscope.studies._token_protocols import CODE
    from genscope.studies._token_training import PromptLoss, prepare, shape_of, task_keys
    from genscope.tasks.token_encoding import default_encoding_dim
    from genscope.train import Fresh, adamw, fit

    sizes = jnp.int32(length), jnp.int32(default_encoding_dim(length))
    shape = shape_of("transformer", length, 1, 0)
    options = {"shape": shape, "architecture": "transformer", "protocol": CODE, "link": "linear", "simple": False}
    task, model, *_ = prepare(task_keys(jr.key(0), length), jr.key(1), jr.key(2), *sizes, **options)

    def run(key) -> None:
        fit(model, Fresh(task, key, BATCH), PromptLoss(task), steps, optimizer=optimizer, every=steps)

    optimizer = adamw(1e-3, weight_decay=0.01)
    return run, list(jr.split(jr.key(3), many))


def curve_rows(name: str, *, has_peer: bool) -> dict[str, str]:
    """Seconds of one architecture's curve, ours and the peer's in turns, and their ratio."""
    lengths, runs, times, share = CURVES[name]
    first, found = fresh_seconds(name, lengths, runs)
    measured, peer, parts = [first], Seconds(0, 0), max(times - 1, 1)
    for part in range(parts if has_peer else 0):
        peer = peer.plus(peer_seconds(name, found[part::parts], share))
        if times > 1:
            measured.append(fresh_seconds(name, lengths, runs)[0])
    wall, cpu = (sum(numbers) / len(measured) for numbers in zip(*measured, strict=True))
    samples, reached = (sum(run[column] for run in found) for column in ("samples", "reached"))
    rows = {
        f"{name}, N = {', '.join(map(str, lengths))}, {runs} runs": f"{samples} samples, {reached} reached",
        f"  {name}: ours, s with compilation": f"{wall:.4g}, of the processors {cpu:.4g}",
    }
    if has_peer:
        rows[f"  {name}: PyTorch, s"] = f"{peer.wall:.4g}, of the processors {peer.cpu:.4g}"
        ratios = f"{peer.wall / wall:.3g}, of the processors {peer.cpu / cpu:.3g}"
        rows[f"  {name}: times slower (asked for {REQUIRED[name]})"] = ratios
    return rows


def main(architectures: Sequence[str] = tuple(CURVES)) -> None:
    from benchmarks.classifier_step import product_rate

    rate = product_rate()
    step = step_seconds()
    defined, shortcut = (count / rate for count in multiply_adds())
    rows: dict[str, Any] = {
        "Transformer, N = 12, ms per step and trial": 1e3 * step,
        "  over the arithmetic limit of its definition": step / defined,
        "  over the arithmetic limit of its shortcut": step / shortcut,
    }
    try:
        import torch  # noqa: F401  # pyright: ignore[reportMissingImports]  # only asks whether the peer is there
    except ImportError:
        rows["PyTorch"] = "not installed here: its ratios are left out"
        has_peer = False
    else:
        has_peer = True
    for name in architectures:
        rows |= curve_rows(name, has_peer=has_peer)
    show("token regression: samples to threshold on 1STR", rows)


if __name__ == "__main__":
    if unknown := {*sys.argv[1:]} - {*CURVES}:
        sys.exit(f"no curve {', '.join(sorted(unknown))}: there are {', '.join(CURVES)}")
    main(sys.argv[1:] or tuple(CURVES))
