# Every target sets up what it needs: `make demo` and `make test` work in a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# One thread a test process: two processes share two cores without getting in each other's way.
TEST_ENV := OMP_NUM_THREADS=1

.PHONY: demo test test-slow faults lint bench bench-quick clean browser

demo: $(READY)  ## train PaPi on the embedded images: about two minutes on two cores
	$(BIN)/papi train --out runs/demo
	$(BIN)/papi report runs/demo

test: $(READY) browser  ## ruff, mypy and the tests
	$(MAKE) lint
	$(TEST_ENV) $(BIN)/pytest -n 2 --dist loadgroup -m "not slow"

test-slow: $(READY)  ## the tests that train for minutes
	$(BIN)/pytest -m slow

faults: $(READY)  ## 200 kills at random moments over all methods: prints kills, resumes, losses
	$(TEST_ENV) $(BIN)/python tests/faults/many_kills.py 200

# Where this may not install, the browser tests are skipped and say how to install by hand.
browser: $(READY)  ## what the browser tests need: Debian's chromium, and axe-core from npm
	-command -v chromedriver >/dev/null || (apt-get update -q && apt-get install -y -q chromium chromium-driver) >/dev/null
	-test -e .venv/npm/node_modules/axe-core || npm install --silent --no-save --prefix .venv/npm axe-core@4

lint: $(READY)  ## style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(READY)  ## speed against plain implementations, as ratios: a quarter of an hour on two idle cores
	$(BIN)/python -m benchmarks

bench-quick: $(READY)  ## the same without the long runs: under a minute
	$(BIN)/python -m benchmarks --quick

clean:  ## remove what the targets made
	rm -rf .venv build dist runs/demo .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)
