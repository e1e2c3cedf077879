# `make demo` and `make test` set everything up on a machine that has only Python 3.11 to 3.13 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo train test check perft golden picture bench results leaderboard notebooks docs clean

# The main job: greedy on the first 1000 evaluation deals under Classic and Relaxed.
demo: $(VENV)/.core
	$(BIN)/rusol evaluate --policy greedy --rules classic --rules relaxed --deals 1000

# A first agent, in a few minutes: trained, or where it was interrupted trained to the end, and evaluated.
train: $(VENV)/.agents
	$(BIN)/python agents/train.py configs/quick.yaml $(if $(wildcard runs/quick/last.zip),--resume)
	$(BIN)/rusol evaluate --policy runs/quick/policy.safetensors --rules relaxed --deals 1000

test: check
	$(BIN)/python -m pytest

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# The counts that the engine is held to, by the reference (tests/perft); the fixed episodes and pictures (tests/golden).
perft: $(VENV)/.dev
	$(BIN)/python tests/reference.py

golden: $(VENV)/.dev
	$(BIN)/python tests/test_golden.py
	$(BIN)/python tests/test_pictures.py

# The picture in the README.
picture: $(VENV)/.core
	$(BIN)/python benchmarks/picture.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/tables.py

# The built-in policies on first-10000, and their table in the README.
results: $(VENV)/.dev
	$(BIN)/python benchmarks/tables.py --play

# The entries of the policies that come with rusol-env, played anew; those of others stay as they are.
ENTRIES := build/leaderboard
leaderboard: $(VENV)/.dev
	rm -rf $(ENTRIES)
	set -e; for policy in random greedy ppo distilled planner planner+; do for suite in first-1000 winnable-1000; do \
		$(BIN)/rusol evaluate --policy $$policy --suite $$suite --out $(ENTRIES); done; done
	set -e; for policy in random greedy ppo; do \
		$(BIN)/rusol evaluate --policy $$policy --rules relaxed --deals 1000 --out $(ENTRIES); done
	$(BIN)/rusol leaderboard add $(ENTRIES) --by 'rusol-env founders' --force
	$(BIN)/python benchmarks/tables.py

# All notebooks, executed whole, with their outputs stored in them.
notebooks: $(VENV)/.dev
	$(BIN)/python notebooks/execute.py

# The documentation, as a site in site/; whatever is wrong with a page or a link fails.
docs: $(VENV)/.dev
	$(BIN)/python -m mkdocs build --strict

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(VENV)/.agents: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[agents]'
	touch $@ $(VENV)/.core

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev,agents]'
	touch $@ $(VENV)/.core $(VENV)/.agents

clean:
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
