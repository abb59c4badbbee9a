# Each command sets up everything itself; nothing else needs to be installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# torch for processors; a machine that cannot reach this address takes what its configuration of pip offers.
TORCH := $(PIP) --retries 0 --timeout 20 --no-deps --extra-index-url https://download.pytorch.org/whl/cpu torch

.PHONY: help demo test test-slow check wheel kernels bench docs docs-serve clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[demo]'
	@touch $@

# pip compiles with one process, `compileall` on all cores; some files are no modules of this Python.
install = $(PIP) --no-compile -e '.[$(1)]' && { $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true; }

$(VENV)/.test: $(BIN)/python pyproject.toml constraints.txt
	$(TORCH)
	$(call install,test)
	@touch $@ $(VENV)/.demo

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(TORCH)
	$(call install,dev)
	@touch $@ $(VENV)/.test $(VENV)/.demo

$(VENV)/.docs: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[demo,docs]'
	@touch $@

demo: $(VENV)/.demo  ## compare the usual policies on the published inputs and on measured ones: tables and figures
	$(BIN)/gpusched compare --scenario published-high --pictures svg --out results/demo-published
	$(BIN)/gpusched compare --pictures svg --out results/demo

test: $(VENV)/.test  ## lint, types, layers and the tests of the core; --lane and folders: tests/lanes.py
	$(MAKE) -j 2 check kernels
	$(BIN)/python -m pytest --lane core --compiled -n 2 -q

test-slow: $(VENV)/.dev  ## what is real and slow: Slurm, a browser, Ray, processes, other libraries, reproductions, the wheel
	bash scripts/install_ipopt.sh $(BIN)/python
	bash scripts/install_chromium.sh
	bash scripts/install_slurm.sh
	$(MAKE) -j 2 wheel kernels
	$(BIN)/python -m pytest --lane slow -n 3 -q

check: $(VENV)/.test  ## lint, layers and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

kernels: $(VENV)/.test  # once, by two processes: else each worker of the tests compiles them
	GPUSCHED_BUILD=everything $(BIN)/gpusched warm-up
	$(BIN)/python -m pytest --lane first -q

wheel: $(VENV)/.test
	$(BIN)/python scripts/check_wheel.py

$(VENV)/.bench: $(BIN)/python pyproject.toml constraints.txt
	$(TORCH)
	$(PIP) -e '.[demo,bench]'
	@touch $@

bench: $(VENV)/.bench  ## measure speed as ratios in one run
	$(BIN)/python -m benchmarks

docs: $(VENV)/.docs  ## build the documentation, strictly
	$(BIN)/mkdocs build --strict

docs-serve: docs  ## the same, served on http://127.0.0.1:8000: opened as files, its pages have no search
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site 8000

clean:  ## remove what was built
	rm -rf $(VENV) site dist build results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
