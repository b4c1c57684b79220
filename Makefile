# make setup · demo · check · test · matrix · shots · bench · bench-long · clean
PYTHON ?= python3
BIN := .venv/bin
export HEADLESS PLANT LOG AREA SINCE ONLY AGAIN

.PHONY: setup schema python bucket postgres clocks demo check lint test soak matrix shots bench bench-long clean

setup:
	@$(PYTHON) tools/setup.py spark

python:
	@$(PYTHON) tools/setup.py python

# all that `console schema` needs: no Java
schema: python

# HEADLESS=1 runs it to the end and checks itself; LOG=access.log takes your own log; PLANT=skip-day must fail
demo: setup
	@$(BIN)/console demo --reset $${HEADLESS:+--headless} $${PLANT:+--plant "$$PLANT"} $${LOG:+--log "$$LOG"}

# the quick loop: no Java, under 30 seconds on two quiet cores once set up; compiled modules are kept, for the workers and for
# the interpreters that tests start
check: lint
	@PYTHONDONTWRITEBYTECODE= QUICK=1 $(BIN)/pytest -q -n 2 --dist loadscope -m "not (slow or stores or spark or faults or ssh or s3 or cluster or bench)"

lint: python
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo > .console/imports.log 2>&1 || { cat .console/imports.log; exit 1; }

# the jars by which Spark reaches a bucket, for the tests of a region in one
bucket: setup
	@$(PYTHON) tools/setup.py bucket

# PostgreSQL's server, for the tests of `console schema` alone
postgres:
	@$(PYTHON) tools/setup.py postgres

# the library that steps the clock of a JVM, for the fault tests alone
clocks:
	@$(PYTHON) tools/setup.py clocks

# AREA=spark (or pure, stores, ssh, s3, cluster, faults; several with commas) runs these alone; SINCE=REF what a change reaches
test: bucket postgres clocks
	@$(BIN)/python tools/test.py

# random faults by seed for so many minutes, going on where the last one stopped (docs/reliability.md), and all kills in
# the order in which they build on each other; then worlds: edits of queries, clients that send files, landing tables of
# any writer, stores, DDL beside PostgreSQL's catalog, spoilt files, far days, doubles, SQL beside Spark's own parser;
# at last small changes of the code, on each of which a test must fail (tests/mutation/README.md)
MINUTES ?= 30
STORE ?= disk
ifeq ($(STORE),disk)
soak: bucket clocks
	@$(BIN)/python -m tests.faults.soak --minutes $(MINUTES)
	@$(BIN)/pytest -q -m faults
	@EDITS=50000 $(BIN)/pytest -q -n 2 tests/planning/property -m "slow and not spark"
	@$(BIN)/python -m tests.closure.soak pairs --minutes $(MINUTES)
	@$(BIN)/python -m tests.closure.soak carried --minutes $(MINUTES)
	@$(BIN)/python -m tests.closure.soak from-now --minutes 10
	@$(BIN)/python -m tests.drawn clients --minutes $(MINUTES)
	@$(BIN)/python -m tests.worlds.soak --minutes $(MINUTES)
	@$(BIN)/python -m tests.propagation.worlds.soak --minutes $(MINUTES)
	@$(BIN)/python -m tests.propagation.ddl.soak --minutes $(MINUTES)
	@CONSOLE_FUZZ=10000 $(BIN)/pytest -q tests/hostile/test_fuzz.py
	@$(BIN)/python -m tests.agent.clean_rounds --minutes 5
	@$(BIN)/python -m tests.agent.watched_rollouts --minutes 40
	@$(BIN)/python -m tests.agent.watched_rollouts --defects --minutes 20
	@$(BIN)/pytest -q -m soak
	@$(BIN)/python -m tests.drawn days --minutes $(MINUTES)
	@$(BIN)/python -m tests.drawn doubles --minutes $(MINUTES)
	@$(BIN)/python -m tests.planning.oracle.soak --minutes $(MINUTES)
	@$(BIN)/python -m tests.mutation.soak
else
# STORE=s3: random faults alone, of regions in a bucket
soak: bucket clocks
	@$(BIN)/python -m tests.faults.soak --store $(STORE) --minutes $(MINUTES)
endif

# one rollout of the demo's pipeline on each older set of Spark and Delta, in environments of their own (tests/matrix)
matrix: setup
	@$(BIN)/python -m tests.matrix

# the pictures of docs/tour.md and the README's recording, from the recordings in docs/tour (tests/shots)
shots: python
	@$(BIN)/python -m tests.shots.draw

# writes docs/benchmarks.md, in less than 25 minutes on two idle cores; ONLY=following runs one part, ONLY=backfill,idle two
bench: setup
	@$(BIN)/python -m tests.bench small

# the same for the sizes of the goals, in less than four hours; what is on the page at this commit is passed over, unless AGAIN=1
bench-long: setup
	@$(BIN)/python -m tests.bench long

# the environment and the jars go too; the demo's own processes are ended first
clean:
	@if [ -x $(BIN)/console ]; then $(BIN)/console demo --stop; fi
	@rm -rf .venv .console build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
