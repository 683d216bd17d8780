SCALE ?= 1
N ?= 20
MINUTES ?= 10
ARGS ?=
PROCESSES ?= 2
SHARD ?= all
# in the order of tests/conftest.py
SHARED := -n $(PROCESSES) --dist loadfile --no-loadscope-reorder
# The minor of Spark that is worked with. An older one has an environment of its own, with its Spark
# in front of all else that .venv has.
SPARK ?= 4.2
NEWEST := 4.2
PYSPARK_4.0 := 4.0.5
PYSPARK_4.1 := 4.1.4
OLDER := 4.0 4.1
VENVS := .venv $(OLDER:%=.venv-%)
VENV := $(if $(filter $(NEWEST),$(SPARK)),.venv,.venv-$(SPARK))
STAMP := $(VENV)/.setup-done
# only the tests start Spark so often that it pays
PREPARED := $(VENV)/.spark-prepared
# what make check leaves to make test
LATER := spark or postgres or slow
# the tests that ask the ledger of proofs
PROVED := tests/matcher/test_fixtures.py tests/matcher/test_two_doors.py
PROVED += tests/harness/mutants/test_wrong_rows.py
PACKAGES := matcher cachemgr scheduler migrations

# Setup compiles nothing; where this is set, each process would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo figures check test test-left test-long smoke dist installed proofs jar sparks sparks-between lint bench tpc mutants mutations fuzz fuzz-ledger chaos load fuzz-api fuzz-growth fuzz-refresh fuzz-refresh-ledger fuzz-local fuzz-results layout users live

help:
	@echo "make setup   build $(VENV) from pyproject.toml and constraints.txt"
	@echo "make demo    the 13 SSB queries without and with a cache (SCALE=$(SCALE), ARGS='…')"
	@echo "make figures the demo, and its figures into README and docs/ssb.svg (SCALE=$(SCALE))"
	@echo "make check   lint, and the quick tests, without Spark and PostgreSQL: what to run before each commit"
	@echo "make test    the tests that the change asks for, in 13 minutes and PROCESSES=$(PROCESSES) with a Spark of its own each (ARGS='…' goes to pytest)"
	@echo "make test-left   those that cover a change, and make test had no time for"
	@echo "make test-long   all tests, or SHARD=k/24 of them; what passed at this commit is not run again"
	@echo "make smoke   text cases, each door and way of refresh: enough for another Spark (SPARK=4.1)"
	@echo "make dist    a release in dist/ (wheel, sdist, jars, bill of materials), of a tree whose tests have passed"
	@echo "make installed   the release in empty environments: each Spark, each extra alone"
	@echo "make proofs  add what Spark says of new and changed text cases to tests/proofs.txt"
	@echo "make jar     the Java classes anew, after a change in cachemgr/jvm/java; needs a JDK"
	@echo "make sparks  what each minor of Spark makes of each expression, and where they differ"
	@echo "make sparks-between  caches that one minor makes, another one refreshes, and each reads"
	@echo "make lint    ruff, mypy, import-linter, deptry, and the check for one migration head"
	@echo "make tpc     TPC-H and TPC-DS on small data without and with caches; writes docs/tpc.md"
	@echo "make mutations   forty changes of the program: does make test choose the tests that notice? (ARGS='…')"
	@echo "make mutants switch off each guard of the matcher and see which test notices"
	@echo "make bench   measure against the budgets, written to bench/results.json"
	@echo "make fuzz    N random worlds, accepted pairs executed on Spark (N=$(N), ARGS='…'); docs/fuzz.md"
	@echo "make chaos   replicas under random kills, stops and damage for MINUTES=$(MINUTES); build/chaos"
	@echo "make load    explain and rewrite under 100 requests a second (MINUTES=$(MINUTES), ARGS='…')"
	@echo "make fuzz-api   wrong statements, SQL and requests for MINUTES=$(MINUTES); docs/fuzz-api.md"
	@echo "make fuzz-growth   doubles random queries for MINUTES=$(MINUTES); their steps may grow with the square"
	@echo "make fuzz-refresh   walks through changes, refreshes and queries for MINUTES=$(MINUTES); docs/fuzz-refresh.md"
	@echo "make users   sixteen threads of four users beside writers, refreshes and changed rights for MINUTES=$(MINUTES)"
	@echo "make fuzz-local   random queries over held rows, computed by us and by Spark, for MINUTES=$(MINUTES)"
	@echo "make fuzz-results   random queries whose rows are written as results and read back (ARGS='--start S --n N')"
	@echo "make layout   does \`cache layout\` name the best of five layouts? (ARGS='--n 10 --seed 1')"
	@echo "make live    a table that grows, refreshes and readers for MINUTES=$(MINUTES) at SCALE=$(SCALE)"
	@echo "make fuzz-refresh-ledger   what all those runs add up to"
	@echo "make fuzz-ledger   what all runs in the ledger add up to"

setup: $(STAMP)

.venv/.setup-done: pyproject.toml constraints.txt
	@[ ! -L .venv ] || { echo ".venv is a link to the environment of another tree, which 'make setup' there" \
		"installs: remove the link for one of this tree's own"; exit 1; }
	@python="$$(.ci/prerequisites)" && \
		{ [ -x .venv/bin/python ] || "$$python" -m venv .venv; }
	@echo "installing into .venv, which takes about a minute"
	@PIP_CONSTRAINT=constraints.txt .venv/bin/python -m pip install \
		--quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	@touch $@
	@echo "installed; for python and cachemgr by their names alone: . .venv/bin/activate"

$(OLDER:%=.venv-%/.setup-done): .venv-%/.setup-done: .venv/.setup-done
	@echo "installing Spark $(PYSPARK_$*) into .venv-$*, which takes up to some minutes"
	@.venv/bin/python .ci/older_spark.py .venv-$* $(PYSPARK_$*)
	@touch $@

%/.spark-prepared: %/.setup-done tests/spark_start.py tests/javac.py $(wildcard tests/java/*/*/*.java)
	$*/bin/python -m tests.spark_start
	@touch $@

demo: $(STAMP)
	$(VENV)/bin/python -m cachemgr demo --scale $(SCALE) $(ARGS)

figures: $(STAMP)
	$(VENV)/bin/python -m cachemgr demo --scale $(SCALE) --report build/ssb.html $(ARGS)
	$(VENV)/bin/python -m bench.readme build/ssb-figures.json

check: lint
	$(VENV)/bin/python -m pytest -m 'not ($(LATER))' $(SHARED) $(ARGS)

test: $(PREPARED)
	@echo "choosing tests by what has changed; the first result takes half a minute"
	@$(VENV)/bin/python -m pytest --choose $(SHARED) $(ARGS)

test-left: $(PREPARED)
	$(VENV)/bin/python -m pytest --left $(SHARED) $(ARGS)

test-long: $(PREPARED)
	$(VENV)/bin/python -m pytest --shard $(SHARD) --record $(SHARED) $(ARGS)

smoke: $(PREPARED)
	$(VENV)/bin/python -m pytest -q $(SHARED) $(ARGS) @tests/smoke.txt

dist: .venv/.setup-done
	.venv/bin/python -m tests.gate.ledger
	.venv/bin/python -m tests.release dist
	@ls dist

installed: .venv/.spark-prepared
	@folder="$$(mktemp -d)" && trap 'rm -rf "$$folder"' EXIT && \
		.venv/bin/python -m pytest -q -n $(PROCESSES) --basetemp "$$folder/tests" tests/installed $(ARGS)

proofs: $(PREPARED)
	$(VENV)/bin/python -m pytest --write-proofs --forget-proofs $(SHARED) $(PROVED) $(ARGS)

jar: $(VENVS:%=%/.spark-prepared)
	for venv in $(VENVS); do $$venv/bin/python -m tests.jar || exit 1; done

sparks: $(VENVS:%=%/.spark-prepared)
	mkdir -p build/sparks
	for venv in $(VENVS); do $$venv/bin/python -m tests.harness.sparks.run > build/sparks/$$venv.json || exit 1; done
	.venv/bin/python -m tests.harness.sparks.run --write build/sparks/.venv*.json

sparks-between: $(VENVS:%=%/.spark-prepared)
	.venv/bin/python -m tests.harness.sparks.between $(ARGS)

lint: $(STAMP)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy --strict $(PACKAGES)
	.venv/bin/lint-imports
	.venv/bin/deptry $(PACKAGES)
	$(VENV)/bin/python -m tests.words
	$(VENV)/bin/python -c 'import sys; from cachemgr.metastore.migrate import main; sys.exit(main())'

bench: $(STAMP)
	$(VENV)/bin/python -m bench $(ARGS)

tpc: $(STAMP)
	$(VENV)/bin/python -m tests.harness.tpc --session $(ARGS)
	$(VENV)/bin/python -m pytest -q tests/harness/tpc

mutants: $(STAMP)
	$(VENV)/bin/python -m tests.harness.mutants.run

mutations: $(PREPARED)
	$(VENV)/bin/python -m tests.harness.mutations.run $(ARGS)

fuzz: $(STAMP)
	$(VENV)/bin/python -m tests.harness.fuzz.run --n $(N) $(ARGS)

fuzz-ledger: $(STAMP)
	$(VENV)/bin/python -m tests.harness.fuzz.ledger

chaos: $(PREPARED)
	$(VENV)/bin/python -m tests.harness.chaos.run --minutes $(MINUTES) $(ARGS)

load: $(STAMP)
	$(VENV)/bin/python -m tests.harness.load.run --minutes $(MINUTES) $(ARGS)

fuzz-api: $(STAMP)
	$(VENV)/bin/python -m tests.harness.fuzz_api.run --minutes $(MINUTES) $(ARGS)

fuzz-growth: $(STAMP)
	$(VENV)/bin/python -m tests.harness.growth.run --minutes $(MINUTES) $(ARGS)

fuzz-refresh: $(STAMP)
	$(VENV)/bin/python -m tests.harness.fuzz_refresh.run --minutes $(MINUTES) $(ARGS)

users: $(STAMP)
	$(VENV)/bin/python -m tests.harness.users.run --minutes $(MINUTES) $(ARGS)

fuzz-local: $(STAMP)
	$(VENV)/bin/python -m tests.harness.local.run --minutes $(MINUTES) $(ARGS)

fuzz-results: $(STAMP)
	$(VENV)/bin/python -m tests.harness.results.run --minutes $(MINUTES) $(ARGS)

layout: $(STAMP)
	$(VENV)/bin/python -m tests.harness.layout.run $(ARGS)

live: $(STAMP)
	$(VENV)/bin/python -m tests.harness.live.run --minutes $(MINUTES) --scale $(SCALE) $(ARGS)

fuzz-refresh-ledger: $(STAMP)
	$(VENV)/bin/python -m tests.harness.fuzz_refresh.ledger
