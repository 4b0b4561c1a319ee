# Everything sets itself up: python3 (3.11 or newer), go, make and git are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
GHOST := $(BIN)/kubectl-ghost

.PHONY: check test test-unit test-e2e test-consumers test-node bench soak demo build clean

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, $(PYTHON) is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

# Lint, types, and the import contracts between the rooms.
check: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=agent $(BIN)/mypy
	$(BIN)/lint-imports

# The control plane, built once (about eight minutes on two cores) into the user's cache folder.
build: $(VENV)/.installed
	$(GHOST) cluster build

test: build
	$(BIN)/pytest tests/unit tests/e2e

test-unit: $(VENV)/.installed
	$(BIN)/pytest tests/unit

test-e2e: build
	$(BIN)/pytest tests/e2e

# What real consumers make of it: Debian's Prometheus, unpacked into the user's cache folder.
test-consumers: build
	$(BIN)/python -m tests.consumers.prometheus_binaries
	$(BIN)/pytest tests/consumers

# On a real kubelet and containerd; needs root on Debian, and installs containerd, runc, iptables and CNI's plugins there.
test-node: build
	$(BIN)/pytest tests/realnode

# Speed beside a peer measured in the same run; also written to bench.json.
bench: build
	$(BIN)/python -m tests.bench --json bench.json

# A thousand nodes, scraped one by one every 15 s while pods come and go, for five minutes; SOAK='--seconds 60' for one.
soak: build
	$(BIN)/python -m tests.soak $(SOAK)

# From nothing to a fleet that the real scheduler has filled.
demo: build
	PATH="$(CURDIR)/$(BIN):$$PATH" docs/demo.sh

clean:
	rm -rf $(VENV) build dist bench.json
