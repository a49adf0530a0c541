# Two commands set up everything: `make run` and `make test`. They need Python 3.11+, Java 17+, make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.complete

.PHONY: setup run test long lint unit bench mass profile soak soak-backfill prove-reconcile
.PHONY: failover spark-wheel screenshots fuzz clean lock
.DEFAULT_GOAL := help

help:
	@echo "make run    the appliance on an embedded Kafka, with a live picture; Ctrl-C stops all"
	@echo "make test   everything that CI runs: lint, types, layers, tests on a real Kafka"
	@echo "make long   tests that take minutes of Spark: repair, follow and its kills, Delta, Iceberg, spark-submit, the migration week"
	@echo "make unit   only the tests that need no broker"
	@echo "make lint   ruff, mypy, import-linter"
	@echo "make bench  throughput, CPU, latency, memory beside a raw Kafka producer (ONLY=, data/bench.*)"
	@echo "make mass   a million waiting messages: how long a start takes, with the view and without (COUNT=)"
	@echo "make profile  where the time goes in the bridge under load"
	@echo "make soak   kills, freezes, cuts by a seeded schedule, then a verdict (MINUTES=5 SEED=… ONLY=srmp|retained|handover|hostile)"
	@echo "make failover  how long senders wait when brokers of a cluster of three go away (ROUNDS= ONLY=)"
	@echo "make soak-backfill  100,000 messages backfilled, killed at random meanwhile (MESSAGES= SEED=)"
	@echo "make spark-wheel  dist/*.whl, and the same as *.zip for spark-submit --py-files"
	@echo "make prove-reconcile  planted faults of every kind among a million messages: each found, none invented (COUNT= SEED=)"
	@echo "make screenshots  of the parity report (REPORT=report.json: of a real one) and of the web page (SECONDS=300), into examples"
	@echo "make fuzz   every parser, guided by coverage (MINUTES=5)"
	@echo "make setup / lock / clean / chart (what is made from values.yaml of the Helm chart)"

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml .ci/uv.lock
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON=") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .ci/uv.lock
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	$(BIN)/python -m bridge.adapters.kafka.jars
	$(BIN)/python -m bridge.adapters.kafka.spark_jars
	touch $(STAMP)

run: setup
	@$(BIN)/msmq-bridge serve --config examples/run.yaml --live

lint: setup
	$(BIN)/ruff format --check bridge spark tests
	$(BIN)/ruff check bridge spark tests
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: setup
	$(BIN)/python -m pytest -m "not kafka"

# Most tests wait for something: a broker that starts, a timer of the protocol. A file stays together.
# A test process that dies ends the run: with a new one the rest of its file would never be handed out.
WORKERS ?= 3
test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0

long: setup
	$(BIN)/python -m pytest --long

bench: setup
	$(BIN)/python -m tests.bench --only "$(ONLY)" --json data/bench.json --chart data/bench.svg

COUNT ?= 1000000
mass: setup
	$(BIN)/python -m tests.outside.retained.mass --count $(COUNT)

profile: setup
	$(BIN)/python -m tests.bench.profiling

MINUTES ?= 5
soak: setup
	$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

ROUNDS ?= 3
failover: setup
	$(BIN)/python -m tests.chaos.failover --rounds $(ROUNDS) $(if $(ONLY),--only "$(ONLY)")

MESSAGES ?= 100000
soak-backfill: setup
	$(BIN)/python -m tests.spark.backfill.killing --messages $(MESSAGES) $(if $(SEED),--seed $(SEED))

prove-reconcile: setup
	$(BIN)/python -m tests.spark.reconcile.planted --count $(COUNT) $(if $(SEED),--seed $(SEED))

spark-wheel: setup
	$(BIN)/uv build --wheel --out-dir dist .
	for wheel in dist/*.whl; do cp "$$wheel" "$${wheel%-py3-none-any.whl}.zip"; done

SECONDS ?= 300
screenshots: setup
	$(BIN)/python -m tests.spark.reconcile.screenshots $(if $(REPORT),--report $(REPORT))
	$(BIN)/python -m tests.docs.screenshots --seconds $(SECONDS)

fuzz: setup
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

.PHONY: chart
chart: setup
	$(BIN)/python -m tests.helm.chart

COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --no-emit-index-url
IMAGE := examples/container
lock:
	$(COMPILE) pyproject.toml --group dev -o requirements.lock
	$(COMPILE) pyproject.toml --extra s3 --extra otel --constraints requirements.lock \
		--no-emit-package pyspark --no-emit-package py4j -o $(IMAGE)/bridge.lock
	echo pyspark | $(COMPILE) - --constraints requirements.lock -o $(IMAGE)/spark.lock
	printf 'hatchling\nuv\n' | $(COMPILE) - --constraints requirements.lock -o $(IMAGE)/build.lock
	echo uv | $(COMPILE) - --constraints $(IMAGE)/build.lock -o .ci/uv.lock
	echo checkov | $(COMPILE) - -o tests/helm/checkov.lock

clean:
	rm -rf $(VENV) data .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
