# Everything is built into .venv in this checkout; pip and vizpub cache downloads.
.DEFAULT_GOAL := help
SHELL := /bin/sh

# The first Python that works and can make a virtual environment.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -q
# Each test process has a Spark and a Neo4j of its own, some 3 GB, and waits for them half of its
# time: three processes keep two processors busy, if there is enough memory.
TEST_PROCESSES ?= $(shell awk '/^MemAvailable/ {print ($$2 > 14e6) ? 3 : 2; found = 1} \
	END {exit !found}' /proc/meminfo 2>/dev/null || echo 2)

.PHONY: help demo docs docs-links docs-check docs-publish test test-changed test-commit test-slice test-long \
	test-long-record test-record test-rings ready pictures images release test-containers check lint pages bench bench-all bench-smoke bench-snapshots

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/ready ## From a real gossipsub trace to Cypher answers, a Gephi file and plots
	@$(BIN)/vizpub demo

PYTEST := $(BIN)/python -m pytest -n $(TEST_PROCESSES)

test: .venv/ready ## Run the quick ring of tests: each rule once
	@$(PYTEST) -m "not long" $(PYTEST_ARGS)

test-changed: .venv/ready ## Of these, run what your change touches; BASE=COMMIT since another commit
	@$(PYTEST) -m "not long" --changed=$(BASE) $(PYTEST_ARGS)

test-commit: .venv/ready ## Run the quick ring and, in the same processes, what test-slice runs
	@$(PYTEST) --slice=HEAD $(PYTEST_ARGS)

test-slice: .venv/ready ## Run a sixtieth of the long ring, and what your change touches of it
	@$(PYTEST) -m long --slice=HEAD $(PYTEST_ARGS)

# A container holds the jars that the others run on. So it runs only the graph's tests of loads, and
# those that its settings, its Java and its memory could change.
IN_CONTAINER := $(addprefix tests/integration/graph/test_, load.py \
	schema.py::test_schema_is_created_and_can_be_created_again \
	queries.py::test_answer_columns_equal_the_header_of_the_query \
	queries.py::test_row_limit_cuts_the_answer_and_sets_more \
	queries.py::test_shortest_paths_equal_networkx \
	queries.py::test_runs_of_similar_names_are_told_apart \
	questions.py::test_k_shortest_paths_equal_networkx_in_length \
	questions_of_runs.py::test_peers_reachable_over_time_equal_networkx \
	free_text.py::test_reading_statement_of_unusual_form_is_answered \
	free_text.py::test_settings_block_load_csv \
	free_text.py::test_statement_beyond_the_time_limit_is_stopped \
	free_text.py::test_statement_ends_at_the_limit_of_rows)
FRESH_IMAGES = if docker version >/dev/null 2>&1 || [ -n "$$REQUIRE_CONTAINERS" ]; then \
	$(BIN)/python docker/images.py; fi
LEDGER = .long/$$(git rev-parse HEAD)

pictures: .venv/ready ## Draw the pictures of the docs again, by the commands of their pages
	@$(BIN)/python -m tests.support.gallery

# What these write into the checkout, to be committed when they are done.
test-long test-long-record test-rings: WRITTEN := $(patsubst %,':!tests/support/%',results.jsonl record.json.gz)

test-long: .venv/ready committed ## Run every test; run it again, and it goes on where it stopped
	@$(FRESH_IMAGES)
	@failed=; \
	$(PYTEST) -n $$(( $(TEST_PROCESSES) + 1 )) --resume=$(LEDGER).txt $(PYTEST_ARGS) || failed=1; \
	env -u NEO4J_URI VIZPUB_TEST_NEO4J=container $(PYTEST) --resume=$(LEDGER).container.txt \
		-m "not long" $(IN_CONTAINER) || failed=1; \
	for python in $$(.ci/pythons); do \
		passed="{\"wheel\": \"$$($$python --version)\"}"; \
		grep -qsxF "$$passed" $(LEDGER).json || \
			{ .ci/wheel $$python tests/unit && echo "$$passed" >>$(LEDGER).json; } || failed=1; \
	done; \
	$(BIN)/python -m tests.support.results long $(LEDGER).txt; \
	test -z "$$failed" && echo "Every test has passed: $(LEDGER).json"

test-record: .venv/ready ## Run the quick ring and record what each test touches, and its seconds
	@$(PYTEST) -m "not long" --record --cache-clear $(PYTEST_ARGS)

# Watched tests take several times as long. Runs that are kept from before would hide who makes them.
test-long-record: .venv/ready committed ## Record the long ring likewise; run it again, and it goes on
	@$(FRESH_IMAGES)
	@cleared=; test -e $(LEDGER).record.notes || cleared=--cache-clear; \
	$(PYTEST) -n $$(( $(TEST_PROCESSES) + 1 )) -m long --record --resume=$(LEDGER).record.txt \
		--timeout=7200 $$cleared $(PYTEST_ARGS)

RINGS ?= 20
test-rings: .venv/ready committed ## Run the quick ring RINGS=20 times in random orders; GO_ON=1 goes on after a failure
	@$(BIN)/python -m tests.support.results quick $(RINGS) $(if $(GO_ON),--go-on) -- \
		$(PYTEST) -m "not long" $(PYTEST_ARGS)

.PHONY: committed
committed:
	@test -z "$$(git status --porcelain -- . $(WRITTEN))" || { \
		echo "Commit first: what was proved is noted for a commit." >&2; exit 1; }

ready: .venv/ready committed ## Prove the last commit before you hand it in: check, the docs, test-changed, the demo
	@git rev-parse HEAD >.ready.new
	@$(MAKE) --no-print-directory -j2 $(CHECKS) docs-check
	@$(MAKE) --no-print-directory test-changed
	@.ci/demo
	@mv .ready.new .ready
	@echo "Ready: $$(git log -1 --format='%h %s' $$(cat .ready))"

DEMO_RUN := $(BIN)/vizpub -q --workspace build/workspace
SITE := $(BIN)/python -m sphinx -qEW --keep-going -c docs

docs: .venv/ready ## Build the site of the docs into vizpub/site; `vizpub docs` opens it
	@rm -rf build/site build/workspace build/beside build/examples && mkdir -p build/beside/docs
	@echo '<meta http-equiv="refresh" content="0; url=docs/index.html">' >build/beside/index.html
	@$(DEMO_RUN) ingest examples/gossipsub --run gossipsub --no-load >/dev/null
	@$(DEMO_RUN) export html gossipsub -o build/beside/docs/played.html
	@cp -r examples build/examples
	@VIZPUB_WORKSPACE="$(CURDIR)/build/workspace" $(BIN)/jupyter execute --inplace build/examples/notebooks/*.ipynb
	@$(SITE) -d build/pages . build/site
	@rm -rf vizpub/site && mv build/site vizpub/site

docs-check: .venv/ready ## Build the site's pages strictly, without what `make docs` makes and executes for it
	@$(SITE) -d build/checked/pages . build/checked/site

docs-links: .venv/ready ## Look whether links from the docs to other sites lead somewhere (needs the network)
	@$(BIN)/python -m sphinx -q -b linkcheck -c docs -d build/pages . build/links

.PHONY: folder
folder:
	@test -n "$(FOLDER)" || { echo "Name the folder with the sites of all versions: FOLDER=DIR" >&2; exit 2; }

docs-publish: folder docs ## Build the site and put it into FOLDER, beside those of other versions
	@$(BIN)/python docs/versions.py "$(FOLDER)"

images: .venv/ready ## Build the container images of Neo4j and of vizpub (needs Docker)
	@$(BIN)/python docker/images.py

release: .venv/ready committed ## Make everything of a release in dist/: VERSION=1.2.0; publishes nothing
	@.ci/release "$(VERSION)"

# Without an engine all are skipped, with the reason; with REQUIRE_CONTAINERS=1 that is a failure.
test-containers: .venv/ready ## Run the quick tests of the images, rebuilt if they changed (needs Docker)
	@$(FRESH_IMAGES)
	@$(PYTEST) -m "not long" $(PYTEST_ARGS) tests/containers

# The layout of the project, and the pages that list what there is.
PAGES := $(addprefix tests/unit/, test_layout.py test_install_page.py test_metrics_page.py cli/test_docs.py cypher/test_page.py)

CHECKS := lint pages

check: .venv/ready ## Lint, types, import rules, layout, pages
	@$(MAKE) --no-print-directory -j2 $(CHECKS)

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

pages: .venv/ready
	$(BIN)/python -m pytest -q $(PAGES)

bench: .venv/ready .bench/ready ## Measure against others on a small input (minutes)
	@$(BIN)/python -m benchmarks

bench-all: .venv/ready .bench/ready ## Measure everything in benchmarks/RESULTS.md (hours); resumes
	@$(BIN)/python -m benchmarks --all

bench-snapshots: .venv/ready .bench/ready ## Measure metrics over snapshots, against others; resumes
	@$(BIN)/python -m benchmarks.snapshots --resume

bench-smoke: .venv/ready ## Measure what users wait for first, against bare Spark (two minutes)
	@$(BIN)/python -m benchmarks.smoke

.bench/ready: benchmarks/requirements.lock
	@echo "Setting up .bench/env with what vizpub is measured against"
	@$(BIN)/python -m venv .bench/env
	@.bench/env/bin/python -m pip install --disable-pip-version-check -q --require-hashes -r $<
	@touch $@

.venv/ready: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "vizpub needs Python 3.11, 3.12 or 3.13 with its venv module \
	(on Debian and Ubuntu: apt install python3-venv)"; exit 1; }
	@echo "Setting up .venv with $(PYTHON) (1.9 GB: a minute and the download, once)"
	@$(PYTHON) -m venv .venv
	@awk '/^[a-z]/ {n++} {print >(".venv/half-" n % 2 ".lock")}' requirements.lock  # for two processors
	@for half in .venv/half-*.lock; do $(PIP) --no-deps --require-hashes -r $$half & done; wait
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@
