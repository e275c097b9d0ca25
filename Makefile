# One command for everything. `make help` lists them.
#
# Needs: make, Python >= 3.11 with its venv module (Debian: apt-get install make python3 python3-venv).
# Everything else comes from requirements.lock, checked against its hashes, into .venv.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Stamps: made when the step is done, so that a second call has nothing to do.
LOCKED := $(VENV)/.locked
INSTALLED := $(VENV)/.installed
CHECKERS := $(VENV)/.checkers
JOBS ?= auto
PYTEST := $(BIN)/pytest -n $(JOBS) --dist worksteal

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "fsm_agent needs Python 3.11 or newer; '$(PYTHON)' is older or missing. Name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu: apt-get install python3-venv" >&2; rm -rf $(VENV); exit 1; }

$(LOCKED): requirements.lock | $(BIN)/python
	@echo "Installing the locked packages into $(VENV) ..."
	@$(PIP) install --require-hashes --only-binary :all: --requirement requirements.lock
	@touch $@

$(CHECKERS): requirements-check.lock $(LOCKED)
	@echo "Installing the locked checkers into $(VENV) ..."
	@$(PIP) install --require-hashes --only-binary :all: --requirement requirements-check.lock
	@touch $@

$(INSTALLED): $(LOCKED) pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: install
install: $(INSTALLED) ## make .venv with the library, its extras and the fsm-agent command line in it
	@echo "Ready: $(BIN)/fsm-agent"

.PHONY: run
run: $(INSTALLED) ## let the agent mend examples/fix_failing_test; PROMPT="..." gives it another task
	@$(BIN)/python examples/fix_failing_test/run.py $(if $(filter command,$(origin PROMPT)),"$$PROMPT_GIVEN")
# Through the environment, so that neither make nor the shell reads quotes or dollars in it. (The origin is
# "command line" for `make run PROMPT=...`; a PROMPT that some shell exports for itself is not meant.)
run: export PROMPT_GIVEN = $(value PROMPT)

.PHONY: test
test: $(INSTALLED) ## run the tests
	@$(PYTEST) -m "not deep"

.PHONY: test-fast
test-fast: $(INSTALLED) ## run the quick tests, the properties with few examples
	@$(PYTEST) -m "not slow and not deep" --hypothesis-profile=fast

.PHONY: test-deep
test-deep: $(INSTALLED) ## run all tests, the properties with fresh seeds and many examples
	@$(PYTEST) --hypothesis-profile=deep

TIMES ?= 20
.PHONY: test-again
test-again: $(INSTALLED) ## run the tests TIMES times, each with fresh seeds and two workers; stop at the first failure
	@for time in $$(seq $(TIMES)); do echo "$$time of $(TIMES)"; \
	  $(BIN)/pytest -n 2 --dist worksteal -m "not deep" --hypothesis-profile=fresh -q || exit 1; done

.PHONY: test-mutation
test-mutation: $(INSTALLED) ## put deliberate bugs into the engine, and tell which of them the kit finds
	@$(BIN)/python -m tests.mutation.runner

.PHONY: check
check: $(INSTALLED) $(CHECKERS) ## check lint, format and types
	@status=0; for checker in "ruff check" "ruff format --check" mypy pyright; do \
	  echo "$$checker"; $(BIN)/$$checker || status=1; done; exit $$status

.PHONY: format
format: $(CHECKERS) ## mend lint and format where a tool can
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

.PHONY: diagrams
diagrams: $(INSTALLED) ## draw diagrams/ from the declaration again
	@$(BIN)/python -m fsm_agent.diagram diagrams

.PHONY: bench
bench: $(INSTALLED) ## measure what the library costs beside a bare loop
	@$(BIN)/python -m benchmarks

# --universal: one file for every platform and Python that we support. No index is named in it.
COMPILE := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

.PHONY: lock
lock: | $(CHECKERS) ## choose the newest versions that pyproject.toml allows, for both lock files
	@$(COMPILE) --extra cli --extra diagrams --extra shell --extra testing --group test \
	  --output-file requirements.lock pyproject.toml
	@$(COMPILE) --constraints requirements.lock --group pyproject.toml:check --output-file requirements-check.lock

.PHONY: clean
clean: ## remove .venv and everything that was made
	@rm -rf $(VENV) build dist .coverage htmlcov .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
