"""One strict world for every test: JAX promotes nothing silently, shapes and types are checked, caches are apart."""

import contextlib
import gc
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Helper modules of the tests are imported as tests.<package>.<module>.
sys.path.insert(0, str(Path(__file__).parents[1]))

gc.disable()  # until all is loaded, which stays: to look through it again and again would be a sixth of the time

# Before JAX is imported, and inherited by the processes that tests start.
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["NPROC"] = "1"  # XLA's threads: as many as trials see, and xdist already uses every core


def knows(flag: str) -> bool:
    """Whether the compiler does: it ends a process with a flag that it does not know, so another one asks."""
    command = [sys.executable, "-c", "import jaxlib.xla_client as client; client.make_cpu_client()"]
    return subprocess.run(command, env=os.environ | {"XLA_FLAGS": flag}, capture_output=True).returncode == 0


if "PYTEST_XDIST_WORKER" not in os.environ:  # which inherits all of this
    flags = ["--xla_cpu_multi_thread_eigen=false"]
    # Most programs run once and compiling them is most of the work: compile plainly, a tenth of the time. `make
    # test-all` runs the optimized programs that users have.
    if "GENSCOPE_FRESH_SEEDS" not in os.environ:
        os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        plain = ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"]
        flags += filter(knows, plain)
    os.environ["XLA_FLAGS"] = " ".join([*flags, os.environ.get("XLA_FLAGS", "")])

MOST_GROWTH, _spared = 2 << 30, 0  # bytes

# Programs compiled by one test serve the others, and never the user's own cache.
_OWN_CACHE = "JAX_COMPILATION_CACHE_DIR" not in os.environ
if _OWN_CACHE:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="genscope-tests-")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")  # one in fourteen small ones is met again

typechecker = importlib.import_module("tests.typechecker")  # jaxtyping itself imports no further than `tests`
typechecker.install()
# The cache's entries are whole when another process reads them.
importlib.import_module("genscope.lab.execution.cache").use_compilation_cache()

pytest_plugins = ("tests.services", "tests.postgres")  # loud lines about missing programs; a PostgreSQL server

# The same examples every time, unless fresh ones are asked for; a busy machine is not a failure.
settings.register_profile(
    "genscope",
    derandomize=os.environ.get("GENSCOPE_FRESH_SEEDS") is None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("genscope")


@pytest.fixture
def launch():
    """Start programs, with pipes to all that they say; however the test ends, none of them outlives it."""
    with contextlib.ExitStack() as ends:

        def launch(*command, **options):
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            process = ends.enter_context(subprocess.Popen([str(word) for word in command], **pipes | options))
            ends.callback(process.kill)  # before the context waits for its end
            return process

        yield launch


@pytest.fixture(autouse=True)
def foreground():
    """Ctrl-C as in a terminal: shells let what runs in the background ignore it, and with it what tests start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def single_precision():
    """No test leaves 64-bit mode on for those that come after it in its process."""
    yield
    if jax := sys.modules.get("jax"):
        left_on = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", False)
        assert not left_on, "this test switched JAX to 64 bits for its whole process: use precision.float64()"


@pytest.fixture(autouse=True)
def room():
    """No process that runs tests dies of the programs that they compile, or takes more memory than a laptop spares."""
    global _spared
    if "jax" not in sys.modules:
        return
    compilation = importlib.import_module("genscope.compilation")
    if not compilation.make_room() and resident() > _spared + MOST_GROWTH:
        compilation.forget_programs()
        _spared = resident()


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else 0


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _OWN_CACHE and not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)
