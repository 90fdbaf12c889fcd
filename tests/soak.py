"""Hours of studies at `paper` whose processes are killed every few minutes: is memory flat, and the store sound?

    make soak HOURS=3       (python -m tests.soak HOURS: twice as many core-hours, on two workers)

Four rules, fixed before the first run: nothing is stuck (each driver that is started stores something within ten
minutes); `store check` finds no problem and no trial that failed; forty trials, drawn at random from all that were
stored, have the same values when they are computed again and nothing disturbs them; and the median process that
lived a quarter of an hour has grown by a tenth at most since its fifth minute. Nothing here waits for a result that
suits it: the hours are given in advance.
"""

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil

from genscope.lab import Processes, Store, Trial, check_store, run, select
from genscope.studies import ALL

# Studies whose trials take less than a minute at `paper`: what is killed every few minutes must be able to finish.
STUDIES = ("edelman2022-and", "lintilhac2026-gap", "edelman2022-family", "lintilhac2026-attention", "mousavi2025-heads")
MEAN_SECONDS = 180  # between kills
LOOK_SECONDS = 5
STUCK_SECONDS = 600
SETTLED, OLD = 300, 900  # seconds of a process's life between which it may grow by
GROWTH = 1.1
AGAIN = 40


class Soak:
    """A store, the driver that fills it, and what was seen of its processes."""

    def __init__(self, folder: Path, seed: int):
        self.url = f"sqlite:///{folder}/soak.db"
        self.killed: Counter[str] = Counter()
        self.stuck: list[str] = []
        self.memory: dict[tuple[int, float], list[tuple[float, int]]] = {}  # by process: age and bytes
        self._folder, self._random = folder, random.Random(seed)
        Store(self.url).close()

    def run(self, seconds: float) -> None:
        """Run the studies in turns, each until it is done or its share of the time is over."""
        end = time.monotonic() + seconds
        for number, study in enumerate(STUDIES):
            self._study(study, time.monotonic() + (end - time.monotonic()) / (len(STUDIES) - number))

    def _study(self, study: str, end: float) -> None:
        command = [sys.executable, "-m", "genscope", "run", study, "--budget", "paper", "--workers", "2"]
        while time.monotonic() < end:
            with (self._folder / "log.txt").open("a") as log:
                driver = subprocess.Popen([*command, "--store", self.url], stdout=log, stderr=log, cwd=self._folder)
            done = self._disturb(driver, study, end)
            driver.wait(60)
            if done:
                return

    def _disturb(self, driver: subprocess.Popen[bytes], study: str, end: float) -> bool:
        """Kill now and then until the driver has ended; whether it did so by itself."""
        strike = self._next_strike()
        stored, news = self._stored(), time.monotonic()
        while driver.poll() is None:
            time.sleep(LOOK_SECONDS)
            now = time.monotonic()
            self._look(driver)
            if self._stored() > stored:
                stored, news = self._stored(), now
            elif now > news + STUCK_SECONDS:
                self.stuck.append(f"{study}: nothing new in {STUCK_SECONDS} s")
                driver.kill()
            if now > end:
                driver.send_signal(signal.SIGINT)
                driver.wait(60)
                return False
            if now > strike:
                self._strike(driver)
                strike = self._next_strike()
        return driver.returncode == 0

    def _next_strike(self) -> float:
        return time.monotonic() + self._random.expovariate(1 / MEAN_SECONDS)

    def _strike(self, driver: subprocess.Popen[bytes]) -> None:
        kind = self._random.choice(["driver", "worker", "worker", "interrupt", "terminate"])
        try:
            workers = psutil.Process(driver.pid).children()
            if kind == "worker":
                self._random.choice(workers).kill()
            else:
                driver.send_signal(
                    {"driver": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}[kind]
                )
        except (psutil.NoSuchProcess, IndexError):  # it ended by itself in this moment
            return
        self.killed[kind] += 1

    def _look(self, driver: subprocess.Popen[bytes]) -> None:
        """Note the memory of the driver and its workers."""
        try:
            process = psutil.Process(driver.pid)
            for each in (process, *process.children()):
                age = time.time() - each.create_time()
                self.memory.setdefault((each.pid, each.create_time()), []).append((age, each.memory_info().rss))
        except psutil.NoSuchProcess:
            pass

    def _stored(self) -> int:
        return sum(sum(counts.values()) for counts in self.counts().values())

    def counts(self) -> dict[str, dict[str, int]]:
        """Trials by study and status."""
        with Store(self.url, read_only=True) as store:
            return store.counts()

    def growth(self) -> list[float]:
        """By what factor each process has grown since it had settled, of those that became old."""
        factors = []
        for seen in self.memory.values():
            settled = next((size for age, size in seen if age > SETTLED), None)
            if settled and seen[-1][0] > OLD:
                factors.append(seen[-1][1] / settled)
        return sorted(factors)

    def differences(self) -> list[str]:
        """Trials that have other values when they are computed again."""
        found = []
        with Store(f"sqlite:///{self._folder}/again.db") as store, Processes(2) as pool:
            for name, trial, values in self._drawn():
                where = {axis: [value] for axis, value in trial.point.items()}
                run(STUDY[name], select(STUDY[name], "paper", where, seed=trial.seed), store=store, pool=pool)
                if store.results([trial]) != {trial.id: values}:
                    found.append(f"{name} {dict(trial.point)} seed {trial.seed}")
        return found

    def _drawn(self) -> Iterator[tuple[str, Trial, object]]:
        with Store(self.url, read_only=True) as store:
            rows = [
                (name, row)
                for name in store.counts()
                for row in store.frame(name).select(*STUDY[name].axes(), "seed").to_dicts()
            ]
            for name, row in self._random.sample(rows, min(AGAIN, len(rows))):
                study, seed = STUDY[name], row.pop("seed")
                trial = Trial(name, study.revision, {axis: row[axis] for axis in row if row[axis] is not None}, seed)
                yield name, trial, store.results([trial])[trial.id]


STUDY = {study.name: study for study in ALL}


def main(hours: float, seed: int = 0) -> int:
    """Soak, print what was found, and say by the status whether the rules hold."""
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), seed)
        soak.run(hours * 3600)
        health, counts, growth = check_store(soak.url), soak.counts(), soak.growth()
        differences = soak.differences()
    failed = sum(each.get("failed", 0) for each in counts.values())
    largest = max(size for seen in soak.memory.values() for _, size in seen)
    median = growth[len(growth) // 2] if growth else None
    print(f"{hours} hours, killed: {dict(soak.killed)}; trials: {counts}")
    print(
        f"store: {len(health.problems)} problems {health.problems}, {health.leases} leases left; {failed} trials failed"
    )
    print(f"{len(differences)} of {AGAIN} trials differ when computed again {differences}; stuck: {soak.stuck}")
    print(
        f"memory: at most {largest / 2**20:.0f} MiB a process; {len(growth)} old ones, grown to {median} of minute 5's"
    )
    return int(bool(health.problems or failed or differences or soak.stuck or (median and median > GROWTH)))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
