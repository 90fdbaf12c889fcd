"""`standard` against another commit: trials of its studies by both, and what all of them would take.

    python -m benchmarks.standard [COMMIT]

Both whole runs would take hours. So a few trials of every study that took a minute or more at the baseline are computed
by both commits in turns, each from an empty cache, on one core; a case's mean time stands for all the trials that the
baseline's `standard` has like it, and its programs are compiled once. Points are the same; trials are those of each
commit's own revision of a study, which may measure more (a second threshold, say) or meet other data.
"""

import csv
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks._timing import show

BASELINE = "49e5027"  # where the second edition began
_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Case:
    """Trials of a study that stand for `number` of the baseline's; `now` holds an axis that it did not have."""

    study: str
    number: int
    where: str
    seeds: int | None = None
    now: str = ""


def _tokens(study: str, number: int, network: str, size: str, now: str = "") -> Case:
    where = f"architecture={network} {size} protocol=code draw=0"
    return Case(study, number, where if "sparsity" in study else f"{where} run=0", now=now)


# Numbers of the searches (the first five) are about those of their stored runs; the others are those of the plans.
CASES = (
    Case("edelman2022-and", 400, "context_length=50 preset=tuned sample_size=52", 16),
    Case("edelman2022-and", 1000, "context_length=200 preset=tuned sample_size=77", 16),
    Case("edelman2022-and", 1000, "context_length=800 preset=tuned sample_size=146", 12),
    Case("edelman2022-and", 600, "context_length=200 preset=minGPT sample_size=103", 8),
    Case("edelman2022-and-long", 144, "context_length=3200 sample_size=200", 2),
    Case("edelman2022-lipschitz", 20, "inequality=head sigma=identity", 1),
    Case("edelman2022-curves", 400, "sample_size=50,200", 6),
    Case("edelman2022-attention", 40, "", 4),
    Case("edelman2022-parity", 20, "context_length=15", 2),
    Case("mousavi2025-heads", 33, "", 1),
    _tokens("mousavi2025-1str", 20, "transformer", "context_length=12"),
    _tokens("mousavi2025-1str", 20, "ffn", "context_length=8"),
    _tokens("mousavi2025-1str", 14, "gru", "context_length=8"),
    _tokens("mousavi2025-simple", 8, "transformer", "context_length=33", "until=both"),
    _tokens("mousavi2025-simple", 7, "ffn", "context_length=25", "until=both"),
    _tokens("mousavi2025-simple", 2, "gru", "context_length=8", "until=both"),
    _tokens("mousavi2025-sparsity", 56, "transformer", "sparsity=3", "until=published"),
    _tokens("mousavi2025-sparsity", 56, "ffn", "sparsity=3", "until=published"),
    Case("lintilhac2026-gap", 45, "", 1),
    Case("lintilhac2026-norms", 26, "degree=2", 1),
    Case("lintilhac2026-perturbation", 60, "", 1),
    Case("lintilhac2026-attention", 300, "scores=full sparsity=3 degree=2", 6),
    Case("lintilhac2026-chain", 36, "", 1),
    Case("lintilhac2026-probes", 960, "", 1),
)


def main(baseline: str = BASELINE) -> None:
    """Time every case by both commits and show the ratios."""
    rows: dict[str, float] = {}
    running, compiling = [0.0, 0.0], [0.0, 0.0]
    with tempfile.TemporaryDirectory() as home:
        other = Path(home) / "baseline"
        _git("worktree", "add", "--detach", str(other), baseline)
        try:
            for number, case in enumerate(CASES):
                took = []
                for side, tree in enumerate((other, _ROOT)):
                    mean, compiled = _run(tree, case, case.now if side else "", Path(home) / f"{number}-{side}")
                    took.append(mean)
                    running[side] += case.number * mean
                    compiling[side] += compiled
                rows[f"{case.study} {case.where}: a trial's time over the baseline's"] = took[1] / took[0]
                print(f"{case.study} {case.where}: {took[0]:.3g} s a trial, now {took[1]:.3g} s", file=sys.stderr)
        finally:
            _git("worktree", "remove", "--force", str(other))
    whole = [sum(side) for side in zip(running, compiling, strict=True)]
    rows["running: share of the baseline's time"] = running[1] / running[0]
    rows["compiling: share of the baseline's time"] = compiling[1] / compiling[0]
    rows["baseline: minutes of one core"] = whole[0] / 60
    rows["together: share of the baseline's time (wanted: 0.6)"] = whole[1] / whole[0]
    show(f"standard: its trials against {baseline}", rows)


def _run(tree: Path, case: Case, more: str, folder: Path) -> tuple[float, float]:
    """Mean seconds of the trials of a case, and the seconds of compiling their programs, by one commit."""
    folder.mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "XDG_", "XLA_"))}
    environment |= {"HOME": str(folder), "PYTHONPATH": str(tree / "src"), "GENSCOPE_STORE": f"sqlite:///{folder}/s.db"}
    genscope = [sys.executable, "-m", "genscope"]
    where = [word for part in f"{case.where} {more}".split() for word in ("--where", part)]
    seeds = [] if case.seeds is None else ["--seeds", str(case.seeds)]
    table = folder / "trials.csv"
    for command in (
        ["run", case.study, "--workers", "1", *where, *seeds],
        ["export", case.study, "--format", "csv", "--out", str(table)],
    ):
        subprocess.run([*genscope, *command], env=environment, cwd=folder, check=True, capture_output=True)
    with table.open() as lines:
        trials = list(csv.DictReader(lines))
    if any(trial["error"] for trial in trials):
        raise RuntimeError(f"a trial of {case} failed in {tree}")
    compiling = sum(float(trial["compile_seconds"]) for trial in trials)
    return sum(float(trial["seconds"]) for trial in trials) / len(trials), compiling


def _git(*words: str) -> None:
    subprocess.run(["git", *words], cwd=_ROOT, check=True, capture_output=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
