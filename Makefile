# Two commands: `make demo` and `make test`. Both set up .venv first, from the package registry alone.

PYTHON   ?= python3
# A CPU build of torch, installed before everything else: a plain install pulls several GB of CUDA.
TORCH    ?= torch==2.13.0
PIP_ARGS ?=
VENV     := .venv
BIN      := $(VENV)/bin
PIP      := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS)

.PHONY: setup demo test check docs docs-check base-check bench clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	@echo "setup: torch (CPU build)" && $(PIP) "$(TORCH)"
	@echo "setup: goldset with all extras" && $(PIP) -e '.[all,dev]'
	@touch $@

demo: setup        ## the main job on embedded defaults, as Prefect flows
	$(BIN)/python -m flows.demo

test: setup        ## every test that this machine can run
	$(BIN)/python -m pytest

check: setup       ## style, types, import layers, generated documentation
	$(BIN)/ruff check goldset flows tests data
	$(BIN)/python -m mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/generate_docs.py --check

docs: setup        ## rewrite the generated parts of README.md and configs/reference.toml
	$(BIN)/python tests/generate_docs.py

base-check:        ## a base install, without extras, in a virtual environment of its own
	$(PYTHON) -m venv $(VENV)-base
	$(VENV)-base/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) .
	$(VENV)-base/bin/python tests/base_install.py $(VENV)-base/bin/goldset

bench: setup       ## search at size: ours beside rank_bm25, bm25s, faiss and encode; about half an hour
	$(BIN)/python tests/benchmarks/bench.py

clean:
	rm -rf $(VENV) $(VENV)-base workspace .prefect
