# Every target installs what it needs: `make demo` and `make test` work in a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DOCS_READY := .venv/.docs-ready
# One thread per process, because two processes share two cores.
TEST_ENV := OMP_NUM_THREADS=1

.PHONY: demo test test-slow faults fuzz lint lock sbom bench bench-quick clean browser docs
# How long `make fuzz` runs, and its random seed.
SECONDS ?= 600
SEED ?= 0

demo: $(READY)  ## train PaPi on the embedded images: about two minutes on two cores
	$(BIN)/papi train --out runs/demo
	$(BIN)/papi report runs/demo

test: $(READY) browser  ## ruff, mypy and the tests
	$(MAKE) lint
	$(TEST_ENV) $(BIN)/pytest -n 2 --dist loadgroup -m "not slow"

test-slow: $(READY)  ## tests that train for minutes, and property tests with new random examples
	$(BIN)/pytest -m slow
	$(TEST_ENV) $(BIN)/pytest -n 2 -m "hypothesis and not slow" --hypothesis-profile "new examples"

faults: $(READY)  ## 200 kills at random moments over all methods: prints kills, resumes, losses
	$(TEST_ENV) $(BIN)/python tests/faults/many_kills.py 200

fuzz: $(READY)  ## corrupted files for every command: prints tries, refusals, crashes, hangs, files touched outside
	$(TEST_ENV) $(BIN)/python tests/fuzz/fuzz.py --seconds $(SECONDS) --seed $(SEED)

# If the installation fails, the browser tests are skipped and say how to install manually.
browser: $(READY)  ## install what the browser tests need: Debian's chromium, and axe-core from npm
	-command -v chromedriver >/dev/null || (apt-get update -q && apt-get install -y -q chromium chromium-driver) >/dev/null
	-test -e .venv/npm/node_modules/axe-core || npm install --silent --no-save --prefix .venv/npm axe-core@4

lint: $(READY)  ## style, types, unsafe calls, and the English of the documentation
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src
	$(BIN)/python -m recipes.prose

# Warnings are errors: a broken link, an unknown name or a tutorial that fails stops the build.
docs: $(DOCS_READY) browser  ## build the documentation site in build/site, and test it in a browser
	$(TEST_ENV) PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/sphinx-build --fail-on-warning --keep-going --jobs 2 --quiet docs build/site
	$(TEST_ENV) PAPI_SITE=build/site $(BIN)/pytest -q -n 2 --dist load tests/browser/test_site.py
	@echo "The site is in build/site: open build/site/index.html in a browser."

lock: $(READY)  ## write requirements.lock after a change to constraints.txt: hashes of the packages that `make` installs
	$(BIN)/python -m recipes.lock $(wildcard $(PIP_FIND_LINKS)/torch-*.whl)

sbom: $(READY)  ## write dist/sbom.json: PaPi's runtime dependencies here, as CycloneDX
	$(BIN)/python -m recipes.sbom dist/sbom.json

bench: $(READY)  ## speed relative to plain implementations: 15 minutes on two idle cores
	$(BIN)/python -m benchmarks

bench-quick: $(READY)  ## the same without the long runs: under a minute
	$(BIN)/python -m benchmarks --quick

clean:  ## remove what the targets created
	rm -rf .venv build dist runs/demo .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Every file is checked against its hash.
# torch without CUDA is installed if it is available, otherwise PyPI's torch.
# The last step installs this project and what is not locked: the CUDA libraries, if torch needs them.
$(READY): pyproject.toml constraints.txt requirements.lock requirements-cpu.lock
	$(PYTHON) -m venv .venv
	-$(BIN)/pip install --quiet --require-hashes --no-deps --requirement requirements-cpu.lock 2>/dev/null
	$(BIN)/pip install --quiet --require-hashes --no-deps --requirement requirements.lock
	$(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[dev]"
	touch $(READY)

$(DOCS_READY): $(READY) requirements-docs.lock
	$(BIN)/pip install --quiet --require-hashes --no-deps --requirement requirements-docs.lock
	touch $(DOCS_READY)
