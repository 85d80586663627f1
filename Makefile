# Everything from a fresh machine: only Python >= 3.11 is needed; the rest is installed into .venv.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-all test-bridges test-wheel fuzz mutants reproduce explorer docs check-docs format benchmarks clean

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(READY)

demo: $(READY)  ## kernels of an MLP and of ResNets on the circle: a table and a figure
	$(BIN)/widelimit demo

reproduce: $(READY)  ## every figure and table of the papers, with a verdict on every claim
	$(BIN)/widelimit reproduce

test: $(READY)  ## formatter, linter, type checker, doctests, examples, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	@$(BIN)/python -c "import torch" 2>/dev/null || echo "PyTorch is not in $(VENV): make test-bridges tests the bridges."
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --durations=10

test-all: $(READY)  ## every case of every family
	WIDELIMIT_ALL=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal

BRIDGES := .venv-bridges
$(BRIDGES)/.ready: pyproject.toml
	test -x $(BRIDGES)/bin/python || $(PYTHON) -m venv $(BRIDGES)
	$(BRIDGES)/bin/python -m pip install --quiet --disable-pip-version-check 'torch==2.13.0'
	$(BRIDGES)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,torch,gpytorch,gpjax]'
	touch $(BRIDGES)/.ready

test-bridges: $(BRIDGES)/.ready  ## PyTorch, GPyTorch, BoTorch, GPJax, all of compat, in an environment of their own
	WIDELIMIT_ALL=1 $(BRIDGES)/bin/python -m pytest -q -n 2 tests/bridges tests/test_compat.py \
	  src/widelimit/torch src/widelimit/gpytorch.py src/widelimit/gpjax.py
	$(BRIDGES)/bin/python benchmarks/laws.py > docs/laws.md

test-wheel:  ## build wheel and sdist twice, compare, try the wheel alone and with each extra
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found."; exit 1; }
	$(PYTHON) tests/wheel.py

DOCS := .venv-docs
$(DOCS)/.ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found."; exit 1; }
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

docs: $(DOCS)/.ready  ## the site, in build/site: examples run, pages tried, no warning
	$(DOCS)/bin/python docs/tools/build.py

check-docs:  ## open every page in Chromium without network, on a laptop and on a phone; needs Node
	node docs/tools/check.mjs build/site

explorer:  ## the page of `widelimit explore`, from its sources; needs Node, and the network once
	cd explorer && npm ci --no-fund --no-audit && npm run --silent check && npm run --silent build

SEED ?= 1
fuzz: $(READY)  ## 20,000 random calls, misuse included; another SEED=... draws others
	$(BIN)/python tests/fuzz.py 20000 $(SEED)

mutants: $(READY)  ## 100 small faults in the numbers, one at a time; prints those that no test notices
	$(BIN)/python tests/mutants.py 100 $(SEED)

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

benchmarks: $(READY)
	$(BIN)/python benchmarks/kernels.py

clean:
	rm -rf $(VENV) $(BRIDGES) $(DOCS) build dist demo reproduction .pytest_cache .ruff_cache .hypothesis
