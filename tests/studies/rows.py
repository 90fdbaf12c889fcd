"""Recorded trials of every study: which, how they are computed, and how they are recorded anew.

    python -m tests.studies.rows             computes all and says which rows differ from the recorded ones
    python -m tests.studies.rows --record    the same, and writes them to rows.json

Trials are computed as by a worker of the command line: in a process of their own, on one thread. A second process
computes them for a processor of 2008 (`OTHER`): a row that hardly changes is expected on every machine. The others
train for so many steps, or stop at so fine a threshold, that last digits decide.
"""

import hashlib
import json
import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax

from genscope.lab import values
from genscope.lab.execution.compute import trial_key
from genscope.lab.execution.one_thread import environment, one_thread
from genscope.lab.execution.provenance import processor_features
from genscope.lab.plans.study import Trial
from genscope.studies import ALL

FILE = Path(__file__).with_name("rows.json")
STUDIES = {study.name: study for study in ALL}
OTHER = {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2", "OPENBLAS_CORETYPE": "NEHALEM"}
TOLERANCE = 1e-4  # elsewhere; a row that is to keep it there changes by a tenth of it at most under `OTHER`

_AND = {"context_length": 50, "sample_size": 40}
_1STR = {"context_length": 2, "draw": 0, "run": 0}
_SIMPLE = {"context_length": 3, "draw": 2, "run": 0, "until": "relative"}
_SPARSITY = {"architecture": "transformer", "sparsity": 2, "protocol": "code", "draw": 0, "until": "published"}
_WALSH = {"context_length": 8, "degree": 1, "sparsity": 2}
_CERTIFICATE = {**_WALSH, "network": "small", "sample_size": 16384, "steps": 20}

# Cheap trials: seconds each, most of them for compiling.
FAST: list[tuple[str, dict[str, Any]]] = [
    ("edelman2022-capacity", {"bound": "head", "form": "order", "context_length": 1000}),
    ("edelman2022-capacity", {"bound": "deep", "form": "explicit", "context_length": 1000}),
    *(
        ("edelman2022-constructions", {"construction": name, "context_length": 12, **sizes})
        for name, sizes in {
            "threshold": {"support_size": 3, "least_ones": 2, "dimension": 0},
            "bag-symmetric": {"support_size": 3, "least_ones": 0, "dimension": 0},
            "random-any": {"support_size": 3, "least_ones": 0, "dimension": 64},
        }.items()
    ),
    ("edelman2022-and", {**_AND, "preset": "tuned"}),
    ("edelman2022-and-long", {**_AND, "preset": "tuned"}),
    ("edelman2022-and-sources", {**_AND, "preset": "tuned", "initialisation": 0, "sample": 1}),
    ("edelman2022-family", {**_AND, "preset": "tuned", "function": "majority of 3"}),
    (
        "mousavi2025-token-retrieval",
        {"context_length": 8, "dim": 4, "sparsity": 1, "encoding_dim": 64, "sharpness": 1.0},
    ),
    ("mousavi2025-recurrent-retrieval", {"context_length": 8, "dim": 4, "sparsity": 2, "encoding_dim": 64}),
    ("mousavi2025-heads-lower", {"family": "retrieval", "sparsity": 4, "dim": 1, "heads": 2}),
    ("mousavi2025-heads-lower", {"family": "best", "sparsity": 3, "dim": 2, "heads": 2}),
    ("mousavi2025-ffn-lower", {"context_length": 6, "dim": 4, "sample_size": 10}),
    ("mousavi2025-1str", {**_1STR, "architecture": "transformer", "protocol": "code"}),
    ("mousavi2025-1str", {**_1STR, "architecture": "ffn", "protocol": "code"}),
    ("mousavi2025-block", {"context_length": 5, "protocol": "code", "steps": 50}),
    ("lintilhac2026-constructions", {"context_length": 6, "degree": 2, "sparsity": 2}),
    ("lintilhac2026-traces", {"case": "G1", "variant": "full", "method": "Hessian"}),
    ("lintilhac2026-gap", {**_WALSH, "sample_size": 64, "steps": 50}),
    (
        "lintilhac2026-bounds",
        {**_WALSH, "sample_size": 8192, "constant": "0.1", "steps": 128},
    ),
    ("lintilhac2026-chain-bounds", {"weights": "paper", "method": "one-pass", "context_length": 8}),
    ("lintilhac2026-chain-bounds", {"weights": "tuned", "method": "chain", "context_length": 8}),
    ("lintilhac2026-probes", {"context_length": 20, "degree": 1, "sparsity": 2, "restriction": "affine"}),
    ("lintilhac2026-probes", {"context_length": 20, "degree": 2, "sparsity": 5, "restriction": "coordinate"}),
    *(
        (
            "lintilhac2026-proximity",
            {"context_length": 20, "degree": 3, "sparsity": 5, "tester": tester, "proximity": 0.1},
        )
        for tester in ("coordinates", "directions")
    ),
    *(
        (
            "lintilhac2026-tilings",
            {"bound": bound, "context_length": 64, "degree": 2, "constant": 0.1, "sample_size": 10**8},
        )
        for bound in ("paper", "tuned")
    ),
]

SLOW: list[tuple[str, dict[str, Any]]] = [
    ("edelman2022-and-restarts", {**_AND, "preset": "tuned"}),
    ("edelman2022-and-restarts-long", {**_AND, "preset": "tuned"}),
    ("mousavi2025-ffn-adamw", {"sample_size": 10}),
    ("mousavi2025-ffn-trained", {"network": "indexed", "sample_size": 4, "decay": 1.0}),
    ("edelman2022-lipschitz", {"inequality": "head", "sigma": "tanh", "context_length": 4, "starts": 64, "steps": 20}),
    ("edelman2022-lipschitz", {"inequality": "deep", "sigma": "relu", "context_length": 4, "starts": 16, "steps": 20}),
    ("edelman2022-and", {**_AND, "context_length": 20, "preset": "minGPT"}),
    ("edelman2022-and-decayed", {**_AND, "preset": "decayed"}),
    ("edelman2022-and-lapses", {**_AND, "preset": "decayed"}),
    ("edelman2022-and-dropout", {"context_length": 12, "sample_size": 80, "preset": "paper"}),
    ("edelman2022-curves", {"context_length": 20, "sample_size": 50, "preset": "minGPT"}),
    ("edelman2022-attention", {"context_length": 31, "sample_size": 100, "preset": "tuned"}),
    ("edelman2022-parity", {"context_length": 5, "rate": 3e-4, "budget": 50}),
    ("mousavi2025-heads", {"family": "positional", "sparsity": 2, "heads": 2, "dim": 1}),
    ("mousavi2025-heads", {"family": "full", "sparsity": 2, "heads": 1, "dim": 8}),
    *(
        ("mousavi2025-simple", {**_SIMPLE, "architecture": name, "protocol": protocol})
        for name, protocol in (("gru-128", "code"), ("rnn", "text"), ("rnn", "theory"))
    ),
    ("mousavi2025-1str", {**_1STR, "architecture": "transformer", "protocol": "text"}),
    ("mousavi2025-1str", {**_1STR, "architecture": "ffn", "protocol": "text"}),
    ("mousavi2025-1str", {**_1STR, "architecture": "transformer", "protocol": "theory"}),
    ("mousavi2025-simple", {**_SIMPLE, "architecture": "transformer", "protocol": "code"}),
    ("mousavi2025-simple", {**_SIMPLE, "architecture": "ffn", "protocol": "text"}),
    ("mousavi2025-sparsity", _SPARSITY),
    ("mousavi2025-lengths", {"architecture": "transformer", "context_length": 4, "task": "1STR", "steps": 100}),
    ("mousavi2025-recurrent-norms", {"network": "fit", "context_length": 3}),
    *(("lintilhac2026-norms", {**_WALSH, "sample_size": 512, "arm": arm, "steps": 50}) for arm in ("paper", "noise")),
    ("lintilhac2026-perturbation", {"context_length": 6, "degree": 2, "sparsity": 5, "draws": 1, "pairs": 2}),
    *(
        ("lintilhac2026-attention", {"context_length": 8, "sparsity": 2, "degree": 2, "scores": scores, "scale": 1.0})
        for scores in ("factored", "full", "positions")
    ),
    *(
        ("lintilhac2026-chain", {"context_length": 2, "target": "all", "method": method})
        for method in ("one-pass", "chain")
    ),
    ("lintilhac2026-probes-trained", {**_WALSH, "sample_size": 128, "steps": 50}),
    *(
        ("lintilhac2026-ablations", {**_WALSH, "context_length": 4, "sample_size": 512, "arm": arm, "epochs": 1})
        for arm in ("layer norm", "definition 1")
    ),
    *(("lintilhac2026-certificate", {**_CERTIFICATE, "learner": learner}) for learner in ("noisy", "plain", "split")),
]


def made_with() -> dict[str, str]:
    """What decides last digits: the processor's features, as a digest, and the version of JAX."""
    return {"processor": hashlib.sha256(processor_features().encode()).hexdigest()[:12], "jax": jax.__version__}


def compute(trials: list[tuple[str, dict[str, Any]]], **setting: str) -> list[dict[str, Any]]:
    """The rows of trials, computed one after the other in a process with a worker's environment."""
    outside = {name: text for name, text in os.environ.items() if not _of_the_tests(name)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.studies.rows", "--answer"],
        cwd=Path(__file__).parents[2],
        env=environment(outside | {"JAX_PLATFORMS": "cpu"} | setting),
        input=json.dumps(trials),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _of_the_tests(variable: str) -> bool:
    """Whether a variable may be a setting of JAX that the tests made; where compiled programs are kept may stay."""
    return variable.startswith(("JAX_", "XLA_")) and "CACHE" not in variable


def _answer() -> None:
    with one_thread():
        for name, point in json.load(sys.stdin):
            study, start = STUDIES[name], time.process_time()
            if study.check is not None:
                study.check(point)
            trial = Trial(name, study.revision, point, 0)
            found = values.plain(study.trial(trial_key(study, trial), **point))
            kept = {key: value for key, value in found.items() if not key.endswith("seconds")}
            row = {"study": name, "revision": study.revision, "point": point, "seed": 0, "values": kept}
            print(json.dumps(row), flush=True)
            print(f"{time.process_time() - start:6.1f} s  {name} {point}", file=sys.stderr, flush=True)


def differences(recorded: dict[str, Any], row: dict[str, Any], tolerance: float = 0.0) -> list[str]:
    """How a row differs from a recorded one, in a line for each value that does."""
    if recorded["revision"] != row["revision"]:
        return [f"revision {recorded['revision']} became {row['revision']}"]
    old, new = recorded["values"], row["values"]
    return [
        f"{name}: {_short(old.get(name))} became {_short(new.get(name))}"
        for name in {**old, **new}
        if name not in old or name not in new or not _same(old[name], new[name], tolerance)
    ]


def _same(old: Any, new: Any, tolerance: float) -> bool:
    if type(old) is not type(new):
        return False
    if isinstance(old, list):
        return len(old) == len(new) and all(_same(*pair, tolerance) for pair in zip(old, new, strict=True))
    if isinstance(old, float):
        both_nan = math.isnan(old) and math.isnan(new)
        return both_nan or math.isclose(old, new, rel_tol=tolerance, abs_tol=tolerance / 100)
    return old == new


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}… ({len(text)} characters)"


def identity(row: dict[str, Any]) -> str:
    """What a row is called: study and point."""
    return f"{row['study']} {json.dumps(row['point'])}"


def _report(record: bool) -> None:
    old = json.loads(FILE.read_text()) if FILE.exists() else {"made_with": None, "rows": []}
    recorded = {identity(row): row for row in old["rows"]}
    with ThreadPoolExecutor() as pool:
        processes = [pool.submit(compute, FAST + SLOW, **setting) for setting in ({}, OTHER)]
        rows, other = [process.result() for process in processes]
    for number, (row, twin) in enumerate(zip(rows, other, strict=True)):
        row["slow"] = number >= len(FAST)
        row["everywhere"] = not differences(row, twin, TOLERANCE / 10)
    if old["made_with"] not in (None, made_with()):
        print(f"The rows were recorded with {old['made_with']}, this is {made_with()}: last digits may differ.")
    found = {identity(row): differences(recorded[identity(row)], row) for row in rows if identity(row) in recorded}
    for name, changes in found.items():
        if changes:
            print(f"changed: {name}", *changes, sep="\n    ")
    for name in [identity(row) for row in rows if identity(row) not in recorded]:
        print(f"new: {name}")
    for name in recorded.keys() - {identity(row) for row in rows}:
        print(f"gone: {name}")
    print(f"{sum(map(bool, found.values()))} of {len(rows)} rows changed.")
    if record:
        lines = ",\n".join(json.dumps(row) for row in rows)
        FILE.write_text(f'{{"made_with": {json.dumps(made_with())}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    _answer() if "--answer" in sys.argv else _report("--record" in sys.argv)
