# Everything lives in .venv; the only thing needed beforehand is Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo test lint clean

install: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "piefs needs Python 3.11 or newer; call make with PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@

demo: install
	$(BIN)/piefs demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest --numprocesses 2

clean:
	rm -rf .venv build dist runs src/*.egg-info
