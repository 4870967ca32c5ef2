# One-word verbs. Each works from a bare checkout: it makes .venv and installs what it needs,
# once (the stamp is renewed when pyproject.toml changes).

PYTHON ?= python3
PORT ?= 8023
# Tests wait for processes most of the time: twice the cores of a small machine.
JOBS ?= 4
BIN := .venv/bin
STAMP := .venv/.installed
PEERS := .venv/.peers-installed

.PHONY: help setup run test compiled soak lint types fix bench docs site programs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' Makefile

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "telex needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(PEERS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

setup: ## telex in .venv, to use it
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "telex needs Python 3.11 or newer; try: make PYTHON=python3.12 setup"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@echo 'telex is in .venv. Next: . .venv/bin/activate && telex --help'

define WELCOME
A server for terminal sessions; Ctrl-C ends it. Its addresses follow.
Paste this into a second terminal, here in this directory, and there is a shell to drive:

  .venv/bin/telex call session.create '{"program": "bash"}'
  .venv/bin/telex call session.input '{"session": "s1", "action": {"type": "text", "value": "seq 3\n"}}'
  .venv/bin/telex call session.snapshot '{"session": "s1", "cells": "none"}'
  .venv/bin/telex attach s1    # the same shell, for you; Ctrl-] leaves it running

endef
export WELCOME

run: $(STAMP) ## the server, on a unix socket and on 127.0.0.1 (PORT=8023)
	@printf '%s\n' "$$WELCOME"
	@exec $(BIN)/telex serve --socket --http 127.0.0.1:$(PORT)

test: $(STAMP) ## lint, types and every test (JOBS=4 at once)
	@$(MAKE) --no-print-directory -j2 lint types programs compiled
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

# In a fresh clone each of the JOBS would compile every test; mypy needs one processor meanwhile.
# A test that cannot be collected is reported by pytest itself.
compiled: $(STAMP)
	-@$(BIN)/python -m pytest --collect-only -q >/dev/null

soak: export TELEX_SOAK := 1
soak: $(STAMP) programs ## the fault tests with their full counts, and the originals; figures printed
	$(BIN)/python -m pytest -s -m counted $(ARGS)

lint: $(STAMP) ## ruff: lint and format, read only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## mypy, strict, on src/ and benchmarks/; mypy and pyright on programs that use the public API
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python tests/api_programs

fix: $(STAMP) ## ruff: mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(PEERS) programs ## figures against peers, one table
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(STAMP) ## render what is generated: clause tables, limits, CLI, state table
	$(BIN)/python -m scripts.render_docs

site: $(STAMP) ## the documentation as a website, in build/site
	$(BIN)/python -m scripts.build_site

programs: ## programs that tests drive, beyond Python
	@scripts/install-test-programs

clean: ## forget the venv and the caches
	rm -rf .venv .cache build
