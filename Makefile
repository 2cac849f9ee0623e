# Each target does its own set-up; after any of them .venv/bin/fleetprof is there. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

OUT ?= build/demo
PYTEST_ARGS ?=
UV := .ci/uv
PYTHON := .venv/bin/python

help:  ## List the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)$$/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

demo: torch  ## Train a small model on four ranks, capture it, show the report (OUT=build/demo)
	.venv/bin/fleetprof demo --out "$(OUT)"

test: lint torch  ## Run all tests, on PyTorch 2.15 and 2.13 and against a real S3 server
	.ci/versitygw >/dev/null
	older=$$(.ci/older-torch); \
	FLEETPROF_TORCH_PYTHONS="$(CURDIR)/$(PYTHON):$$older" $(PYTHON) -m pytest $(PYTEST_ARGS)

test-fast: base  ## Run the tests that need neither PyTorch nor an S3 server
	$(PYTHON) -m pytest -m "not torch and not s3" $(PYTEST_ARGS)

lint: base  ## Check style, types, who imports whom, and that generated files are fresh
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports
	$(PYTHON) api/generate.py --check

bench: torch  ## Measure what we claim against named peers; the table goes to bench/results/
	$(PYTHON) bench/run.py

generate: base  ## Make the generated files of the contract anew
	$(PYTHON) api/generate.py

clean:  ## Remove what was made in the tree
	rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The project and its tools. --inexact leaves PyTorch in place where it is there already.
base:
	$(UV) sync --frozen --all-extras --no-group torch --inexact

# And PyTorch: 5.3 GB the first time, from uv's cache afterwards.
torch:
	$(UV) sync --frozen --all-extras

.PHONY: help demo test test-fast lint bench generate clean base torch
