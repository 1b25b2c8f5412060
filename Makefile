# Each target does its own set-up: a machine with Python 3.11+, git and make is enough.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Workers of the test run: one more than cores, since tests also wait for disks and for other processes.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

.PHONY: demo test lint types pytest releases reports docs golden mutants bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("statemend needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(STAMP)

## Build the damaged demo home, audit it, write the reports, say where they are.
demo: $(STAMP)
	rm -rf demo-home demo-home-reports
	$(BIN)/statemend demo demo-home

## Everything that CI runs.
test: $(STAMP) lint types pytest

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks reports docs
	$(BIN)/ruff format --check src tests benchmarks reports docs
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry src

types: $(STAMP)
	$(BIN)/mypy

## Real Hermes releases, cached outside the tree (STATEMEND_TEST_CACHE, default ~/.cache/statemend-tests).
releases: $(STAMP)
	$(BIN)/python -m tests.hermes.releases

pytest: releases
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

## Regenerate the sample reports from the demo.
reports: $(STAMP)
	$(BIN)/python -m reports.build

## Write the generated pages of the documentation anew.
docs: $(STAMP)
	$(BIN)/python -m docs.build

## Keep the findings of the rules' tests as they are now said (tests/audit/golden); read what git diff shows.
golden: $(STAMP)
	STATEMEND_GOLDEN=write $(BIN)/python -m pytest -q tests/audit/rules

## Judge the tests of the rules by mutants: SAMPLE=500 takes so many by chance, all of them take hours.
mutants: $(STAMP)
	$(BIN)/python -m tests.mutants $(if $(SAMPLE),--sample $(SAMPLE))

bench: $(STAMP)
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.evidence
	$(BIN)/python -m benchmarks.repair

clean:
	rm -rf $(VENV) demo-home demo-home-reports mutants .mypy_cache .ruff_cache .pytest_cache
