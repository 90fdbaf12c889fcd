# Every target makes .venv by itself; Python >= 3.11 with pip and venv is all a machine needs.
PYTHON ?= python3
# The newest JAX needs a newer Python: the first of these that runs, or none.
NEWER_PYTHON ?= $(shell for each in python3.13 $$HOME/.pyenv/versions/3.13*/bin/python \
  python3.12 $$HOME/.pyenv/versions/3.12*/bin/python; do \
  $$each -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo $$each && break; done)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
HOURS  ?= 3
OLDEST := jax==0.10.0 jaxlib==0.10.0
PIP    := -m pip install --quiet --disable-pip-version-check

# The lock first, by hash, with all extras; then the package itself, which carries no hash and must not fetch its build tools.
define fill
	$(1)/bin/python $(PIP) --require-hashes -r requirements.lock
	$(1)/bin/python $(PIP) --no-deps --no-build-isolation -e .
endef

# Bytecode is kept, whatever the environment says: tests start many processes, and each would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: reproduce test test-all test-newest test-peers test-torch test-wheel soak docs lint format bench lock clean

reproduce: $(READY)  ## decide the claims at the quick budget, write report.html
	$(BIN)/genscope reproduce --budget quick

test: $(READY)  ## the test suite (minutes)
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-all: STARTED := $(shell date +%s)
test-all: $(READY) .venv-oldest/.ready  ## with the slow tests and fresh seeds; then on the oldest and the newest JAX
	GENSCOPE_FRESH_SEEDS=1 $(BIN)/pytest -n 2 --dist worksteal
	.venv-oldest/bin/python -m pytest -n 2 --dist worksteal -m "not slow"
	$(MAKE) test-peers
	$(MAKE) test-torch
	@if [ -n "$(NEWER_PYTHON)" ]; then $(MAKE) test-newest; \
	else echo "SKIPPED: the newest JAX needs Python 3.12 or 3.13, and there is none here. NEWER_PYTHON=... names one."; fi
	@echo "make test-all: all passed, after $$(( ($$(date +%s) - $(STARTED)) / 60 )) minutes"

test-newest: .venv-newest/.ready  ## on the newest JAX, which needs Python 3.12 or newer
	.venv-newest/bin/python -m pytest -n 2 --dist worksteal -m "not slow"

test-peers: .venv-bench/.ready  ## what is compared with boofun, psignifit and pyfwht, in the environment of `make bench`
	.venv-bench/bin/python -m pytest tests/fourier/test_spectrum.py tests/fourier/test_transform.py tests/lab/test_levels.py \
	  -k "boofun or psignifit or pyfwht"

test-torch: .venv-torch/.ready  ## modules of PyTorch and Hugging Face, slow tests too, in an environment of their own
	.venv-torch/bin/python -m pytest tests/own_models tests/test_tutorials.py -k "own_models or my-pytorch or my-hugging"

soak: $(READY)  ## HOURS (3, on two cores) of `paper` studies whose processes are killed every few minutes
	$(BIN)/python -m tests.soak $(HOURS)

test-wheel: $(READY)  ## the wheel in fresh environments of Python 3.11, 3.12 and 3.13, without the lock
	$(BIN)/pytest tests/test_pythons.py

docs: $(READY)  ## the site in build/site, its notebooks executed (minutes the first time); needs no network
	$(BIN)/python docs/site/build.py

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/lint-imports
	$(BIN)/pyright
	$(BIN)/oxlint --deny-warnings src/genscope/explorer/static

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) .venv-bench/.ready  ## ratios against peers, in one run
	.venv-bench/bin/python -m benchmarks

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("genscope needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call fill,$(VENV))
	touch $@

.venv-oldest/.ready: requirements.lock pyproject.toml
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	$(call fill,.venv-oldest)
	.venv-oldest/bin/python $(PIP) $(OLDEST)
	touch $@

.venv-newest/.ready: requirements.lock pyproject.toml
	test -x .venv-newest/bin/python || $(NEWER_PYTHON) -m venv .venv-newest
	$(call fill,.venv-newest)
	touch $@

.venv-torch/.ready: requirements.lock requirements-torch.lock pyproject.toml
	test -x .venv-torch/bin/python || $(PYTHON) -m venv .venv-torch
	$(call fill,.venv-torch)
	.venv-torch/bin/python $(PIP) -r requirements-torch.lock
	touch $@

# Peers (PyTorch) live in an environment of their own; a missing peer is named and its ratio left out.
.venv-bench/.ready: requirements.lock requirements-bench.lock pyproject.toml
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	$(call fill,.venv-bench)
	-USE_CUDA=0 .venv-bench/bin/python $(PIP) -r requirements-bench.lock
	touch $@

lock:  ## resolve again for all platforms (needs uv)
	uv pip compile pyproject.toml --extra all --group dev --group docs --universal --generate-hashes --no-annotate --no-header \
	  --python-version 3.11 --quiet -o requirements.lock

clean:
	rm -rf $(VENV) .venv-bench .venv-oldest .venv-newest .venv-torch .pytest_cache .ruff_cache .hypothesis build dist
