# `make demo` and `make test` set up everything themselves; nothing else needs to be installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo test check types wheel kernels bench docs docs-serve clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --no-compile -e '.[dev]'
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # on all cores, where pip uses one; some files are no modules
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[demo,docs]'
	@touch $@

demo: $(VENV)/.demo  ## compare the usual policies on the published inputs and on measured ones: tables and figures
	$(BIN)/gpusched compare --scenario published-high --pictures svg --out results/demo-published
	$(BIN)/gpusched compare --pictures svg --out results/demo

test: $(VENV)/.dev  ## lint, types, layers, the built wheel in a bare environment, and all tests
	bash scripts/install_ipopt.sh $(BIN)/python
	bash scripts/install_chromium.sh
	bash scripts/install_slurm.sh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(MAKE) -j 3 types wheel kernels
	$(BIN)/python -m pytest -n 3 --durations=60

check: $(VENV)/.dev  ## lint, types, layers, and the tests that are not slow: some minutes, once kernels are compiled
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 -q -m "not slow"

types: $(VENV)/.dev
	$(BIN)/mypy

kernels: $(VENV)/.dev  # else each worker of the tests compiles them
	$(BIN)/gpusched warm-up --policies edf,sts,sts-x

wheel: $(VENV)/.dev
	$(BIN)/python scripts/check_wheel.py

$(VENV)/.bench: $(BIN)/python pyproject.toml constraints.txt
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
