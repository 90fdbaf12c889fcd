# Every target makes .venv by itself; Python >= 3.11 with pip and venv is all a machine needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
OLDEST := jax==0.10.0 jaxlib==0.10.0

# Bytecode is kept, whatever the environment says: tests start many processes, and each would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: reproduce test test-all lint format bench lock clean

reproduce: $(READY)  ## decide the claims at the quick budget, write report.html
	$(BIN)/genscope reproduce --budget quick

test: $(READY)  ## the test suite (minutes)
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-all: $(READY) .venv-oldest/.ready  ## with the slow tests and fresh seeds; then on the oldest JAX we support
	GENSCOPE_FRESH_SEEDS=1 $(BIN)/pytest -n 2 --dist worksteal
	.venv-oldest/bin/python -m pytest -n 2 -m "not slow"

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/lint-imports
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) .venv-bench/.ready  ## ratios against peers, in one run
	.venv-bench/bin/python -m benchmarks

# The lock first, by hash; then the package itself, which carries no hash and must not fetch its build tools.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("genscope needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

.venv-oldest/.ready: requirements.lock pyproject.toml
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check $(OLDEST)
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Peers (PyTorch) live in an environment of their own; a missing peer is named and its ratio left out.
.venv-bench/.ready: requirements.lock requirements-bench.lock pyproject.toml
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	-USE_CUDA=0 .venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.lock
	touch $@

lock:  ## resolve again for all platforms (needs uv)
	uv pip compile pyproject.toml --group dev --universal --generate-hashes --no-annotate --no-header \
	  --python-version 3.11 --quiet -o requirements.lock

clean:
	rm -rf $(VENV) .venv-bench .venv-oldest .pytest_cache .ruff_cache .hypothesis build dist
