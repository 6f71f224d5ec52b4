# Everything lives in .venv; the only thing needed beforehand is Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
# If set, as in many containers, every process compiles its libraries' sources again, which takes seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo test test-all fast slow lint docs pages bench fuzz soak coverage mutants clean

install: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "piefs needs Python 3.11 or newer; call make with PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[test]'
	touch $@

demo: install
	$(BIN)/piefs demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

# Lint runs beside the tests: it is a small part of them, and neither waits for the other.
test: install
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint fast

fast: install
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not slow"

# What `make test` leaves out: processes, browsers, clusters, the docs, every family of metrics.
slow: install
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m slow

test-all: test slow

# The site, with every example executed, in docs/_build/html.
docs: install
	$(BIN)/sphinx-build --fail-on-warning --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

# Every table, figure and page that is made from the records and from the code.
pages: install
	$(BIN)/piefs reproduce --report-only
	$(BIN)/python -m lab.experiments.report
	$(BIN)/python -m lab.tables.page
	$(BIN)/python -m lab.tree
	$(BIN)/python -m lab.import_graph
	$(BIN)/python -m lab.counts

# Peers and the PyTorch reference are heavy, hence an environment of their own.
# make bench ONLY="steps inference" measures a part; htru2 and mnist are looked for in $$PIEFS_DATA.
# make bench ONLY=tables is a day's work apart: the files of $$PIEFS_DATA/tables, in another environment.
ifeq ($(ONLY),tables)
bench: .venv-tables/.installed
	.venv-tables/bin/python -m lab.tables
	.venv-tables/bin/python -m lab.tables.page
else
bench: .venv-bench/.installed
	.venv-bench/bin/python -m lab.benchmarks $(ONLY)
	.venv-bench/bin/python -m lab.benchmarks.pages
endif

.venv-bench/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --upgrade pip
	.venv-bench/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@

.venv-tables/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-tables
	.venv-tables/bin/python -m pip install --quiet --upgrade pip
	.venv-tables/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[app]' --group tables
	touch $@

# 10,000 spoiled files for every reader; some minutes. make fuzz ONLY="csv model" does a part.
fuzz: install
	$(BIN)/python -m lab.fuzz $(ONLY)
	$(BIN)/python -m lab.fuzz.page

# A hundred kills at random moments, about ten minutes.
soak: install
	$(BIN)/python -m lab.fuzz.soak
	$(BIN)/python -m lab.fuzz.page

# Lines and branches that the tests run, those of commands included; half as long again as make test.
coverage: install
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --cov --cov-report=json:.coverage.json
	$(BIN)/python -m lab.fuzz.covered .coverage.json
	$(BIN)/python -m lab.fuzz.page

# Small changes to the maths, one at a time, to see whether a test notices; some hours for all.
mutants: install
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group mutants
	$(BIN)/python -m lab.mutants $(ONLY)
	$(BIN)/python -m lab.mutants.score

clean:
	rm -rf .venv .venv-bench .venv-tables build dist runs src/*.egg-info docs/_build docs/gallery
