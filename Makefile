# One-word verbs. Each works from a bare checkout: it makes .venv and installs what it needs,
# once (the stamp is renewed when pyproject.toml changes).

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: help run test soak lint types fix bench docs programs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' Makefile

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "telex needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

run: $(STAMP) ## the main job (until the server exists: telex doctor)
	@$(BIN)/telex doctor

test: lint types programs ## lint, types and every test
	$(BIN)/python -m pytest $(ARGS)

soak: $(STAMP) programs ## the fault tests with their full counts, figures printed
	TELEX_SOAK=1 $(BIN)/python -m pytest -s -m counted $(ARGS)

lint: $(STAMP) ## ruff: lint and format, read only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## mypy, strict, on src/
	$(BIN)/mypy

fix: $(STAMP) ## ruff: mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## figures against peers, one table
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(STAMP) ## render what is generated: clause tables, limits, CLI, state table
	$(BIN)/python -m scripts.render_docs

programs: ## programs that tests drive, beyond Python
	@scripts/install-test-programs

clean: ## forget the venv and the caches
	rm -rf .venv .cache
