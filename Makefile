# make up      set up .venv, serve the example fleet, print what to type next
# make test    set up what the tests need and run them: unit and contract, then end to end (WORKERS at a time)
# make kubectl-suite  kubectl's own shell suite, as far as it passes (WRITES=Commit: in a workspace whose writes are commits)
# make conformance    Kubernetes' own end-to-end suite, as far as it passes (WRITES as above)
# make check   the import contract, ruff (rules and format), mypy, links of the documentation
# make docs    docs/ as a site, in build/site; a link that leads nowhere is an error
# make settings  what docs/settings.md, commands.md, metrics.md, kinds.md and conditions.md have of the source
# make bench   the published figures
# make lock    requirements/, made of pyproject.toml
# make release   dist/: sdist, wheel, chart, manifests and the list of what is in an installation
# make histories  properties over histories (pushes, losses, restarts, kills, intruders), ROUNDS times with other examples
# Needs git and Python 3.11 or newer; for the tests against real clusters also Go (or the package index, which has it).

.DEFAULT_GOAL := help
.PHONY: help up test kubectl-suite conformance check docs settings bench histories setup lock release clusters clean
.SUFFIXES:
MAKEFLAGS += --no-print-directory --no-builtin-rules

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOOLS := $(VENV)/.tools
FAST := $(wildcard tests/unit tests/contract tests/golden)
WORKERS ?= 2
WRITES ?= Store
WORKSPACES ?= 10000
ROUNDS ?= 20
HISTORIES := $(addprefix tests/unit/reconciler/,loading/test_histories.py loading/test_shown.py \
  loading/test_lost_copies.py loading/test_pin_histories.py loading/test_overtaking.py loading/test_encrypted_histories.py \
  loading/proposals/test_proposal_histories.py syncing/test_withdrawals.py commands/servers \
  controllers/test_workspace_histories.py drilling/test_drill_histories.py viewing/test_fillings.py) $(addprefix tests/unit/apiserver/serving/,test_tenants.py \
  test_tenant_rights.py)
PYTEST_ARGS ?=

help:
	@sed -n '/^$$/q; s/^# //p' Makefile

up: $(STAMP)
	@exec $(BIN)/treeplane up examples/fleet-repo

test: $(TOOLS) clusters
	@$(BIN)/pytest $(FAST) -n $(WORKERS) $(PYTEST_ARGS)
	@$(BIN)/pytest tests/e2e -n $(WORKERS) $(PYTEST_ARGS)

kubectl-suite: $(TOOLS) clusters
	@cd tests && ../$(BIN)/python -m kubectl_suites --writes $(WRITES)

conformance: $(TOOLS) clusters
	@cd tests && ../$(BIN)/python -m conformance --writes $(WRITES)

check: $(TOOLS)
	@$(BIN)/lint-imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(MAKE) docs

docs: $(TOOLS)
	@$(BIN)/sphinx-build -q -n -W --keep-going -c docs/site . build/site

settings: $(STAMP)
	@$(BIN)/python -m reconciler.commands.settingspage docs/settings.md
	@$(BIN)/python -m reconciler.commands.commandspage docs/commands.md
	@$(BIN)/python -m reconciler.commands.metricspage docs/metrics.md
	@$(BIN)/python -m reconciler.commands.kindspage docs/kinds.md
	@$(BIN)/python -m reconciler.commands.conditionspage docs/conditions.md

bench: $(TOOLS) clusters
	@$(BIN)/python bench/load.py $(WORKSPACES)
	@$(BIN)/python bench/diff.py $(WORKSPACES)
	@$(BIN)/python bench/history.py $(WORKSPACES)
	@$(BIN)/python bench/at_commit.py $(WORKSPACES)
	@$(BIN)/python bench/drill.py $(WORKSPACES)
	@$(BIN)/python bench/status_command.py $(WORKSPACES)
	@$(BIN)/python bench/burst.py
	@$(BIN)/python bench/statuses.py
	@$(BIN)/python bench/rendering.py
	@$(BIN)/python bench/rendered_load.py
	@$(BIN)/python bench/pushes.py
	@$(BIN)/python bench/webhook.py
	@$(BIN)/python bench/start.py
	@$(BIN)/python bench/first_minute.py
	@$(BIN)/python bench/commit_to_applied.py
	@$(BIN)/python bench/api.py
	@$(BIN)/python bench/metrics.py
	@$(BIN)/python bench/commit_writes.py
	@$(BIN)/python bench/workspaces.py
	@$(BIN)/python bench/neighbours.py
	@$(BIN)/python bench/watches.py
	@$(BIN)/python bench/views.py
	@$(BIN)/python bench/incoming.py
	@$(BIN)/python bench/sources.py
	@$(BIN)/python bench/soak.py

# In CI the examples are the same each time, so what is rare is found here.
histories: $(TOOLS)
	@for round in $$(seq $(ROUNDS)); do env -u CI $(BIN)/pytest -q -n $(WORKERS) $(HISTORIES) || exit 1; done

# Ahead of the tests, so that the first build (minutes) is seen and counts against no test's time limit.
clusters: $(TOOLS)
	@cd tests && ../$(BIN)/python -m realclusters.binaries
	@cd tests && ../$(BIN)/python -m realclusters.giteabinary
	@cd tests && ../$(BIN)/python -m realclusters.sopsbinary
	@cd tests && ../$(BIN)/python -m realclusters.helmbinary
	@cd tests && ../$(BIN)/python -m realclusters.proxybinaries
	@cd tests && ../$(BIN)/python -m realclusters.promtoolbinary
	@cd tests && ../$(BIN)/python -m realclusters.imagebuilder
	@cd tests && ../$(BIN)/python -m realclusters.fluxbinary

setup: $(TOOLS)

$(STAMP): pyproject.toml requirements/run.txt requirements/build.txt
	@echo "setting up $(VENV) (once, and after changes of pyproject.toml and requirements/)"
	@$(PYTHON) release/environment.py $(VENV) run.txt build.txt
	@touch $@

$(TOOLS): $(STAMP) requirements/tools.txt
	@echo "setting up what tests and checks need"
	@$(PYTHON) release/environment.py $(VENV) tools.txt
	@touch $@

# After a change of the requirements in pyproject.toml; with ARGS=--upgrade also to newer versions of all.
lock: $(TOOLS)
	@PATH=$(BIN):$$PATH $(BIN)/python -m release.locks $(ARGS)

# Of the commit that is checked out, the same bytes each time.
release: $(TOOLS)
	@$(BIN)/python -m release.build dist

clean:
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
