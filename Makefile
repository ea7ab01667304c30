# Two commands do it all: `make up` (from a clone to a served prediction) and `make test` (every test tier).
# Everything they make lies outside the clone, under ~/.cache/inference-platform (INFERENCE_PLATFORM_CACHE moves it); `.venv` is a link into it.
SHELL := /bin/bash
PYTHON ?= python3
# A shell that did `make env CLUSTER=two` goes on with that cluster.
CLUSTER ?= $(or $(INFERENCE_PLATFORM_CLUSTER),local)
CONTEXT ?=
PY := .venv/bin/python
export INFERENCE_PLATFORM_CLUSTER := $(CLUSTER)
# A value as one word of the shell, whatever is in it.
quoted = '$(subst ','\'',$(1))'
# The argument of a variable the caller gave, empty too: `make down CONTEXT=$$UNSET` must not mean the local cluster.
given = $(if $(filter-out file,$(firstword $(origin $(1)))),--$(2)=$(call quoted,$($(1))))
CONTEXT_ARGUMENT = $(call given,CONTEXT,context)

.PHONY: help up down status env predict registry load cluster cluster-stop check format lint types imports unit preview serving e2e test bench optimise toolchain images models schema prune venv

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/\$$\$$/$$/g' | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

venv:
	@$(PYTHON) tools/bootstrap.py

up: venv ## toolchain, images, local cluster and the stack `local`; ends with a served prediction (CONTEXT=<kube context>: your own cluster)
	@$(PY) -m tools.up $(CONTEXT_ARGUMENT) $(if $(REGISTRY),--registry=$(call quoted,$(REGISTRY)))

down: venv ## take the platform and the local cluster down; caches stay
	@$(PY) -m tools.down $(CONTEXT_ARGUMENT)

status: venv ## what runs: cluster, stack, models and their weights
	@$(PY) -m tools.status $(CONTEXT_ARGUMENT)

env: venv ## shell settings for pulumi and kubectl: eval "$$(make env)"
	@$(PY) -m tools.env $(CONTEXT_ARGUMENT)

predict: venv ## ask MODEL (magika) about FILE (default README.md) through the gateway, over HTTP and gRPC
	@$(PY) -m tools.predict $(CONTEXT_ARGUMENT) $(if $(MODEL),--model=$(call quoted,$(MODEL))) $(call quoted,$(or $(FILE),README.md))

registry: venv ## the versions of the local stack's models and how far each may go
	@$(PY) -m tools.registry $(CONTEXT_ARGUMENT)

load: venv ## open-loop traffic through the gateway: RATE requests per second (50) for SECONDS (20)
	@$(PY) -m tools.load --rate $(or $(RATE),50) --seconds $(or $(SECONDS),20)

cluster: venv ## only the local Kubernetes (NODES=2 for a second node)
	@$(PY) -m tools.cluster start --name=$(call quoted,$(CLUSTER)) $(if $(NODES),--nodes=$(call quoted,$(NODES)))

cluster-stop: venv ## stop the local Kubernetes, keep its state
	@$(PY) -m tools.cluster stop --name=$(call quoted,$(CLUSTER))

toolchain: venv ## find or build pulumi, Kubernetes, Istio
	@$(PY) -m tools.toolchain ensure

images: venv ## build the local container images
	@$(PY) -m tools.images build

models: venv ## build the model repository from serving/models (TO=<folder or .tar>); publish, fetch, backup: python -m serving.repository --help
	@$(PY) -m tools.models $(if $(TO),--to=$(call quoted,$(TO)))

format: venv ## rewrite the code in the project's format
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

lint: venv
	@.venv/bin/ruff format --check . && .venv/bin/ruff check . && .venv/bin/yamllint -s .

types: venv
	@.venv/bin/mypy .

imports: venv
	@.venv/bin/lint-imports

unit: venv ## the fast test tiers
	@.venv/bin/pytest -q -n 2 tests

check: venv ## format, lint, types, imports and the fast test tiers; under two minutes
	@$(PY) -m tools.test check

preview: venv ## the stacks on the real Pulumi engine against a real API server
	@$(PY) -m tools.test preview

serving: venv ## the serving image's own Triton, without a cluster
	@$(PY) -m tools.test serving

e2e: venv ## the platform on a real local Kubernetes
	@$(PY) -m tools.test e2e

test: venv ## every test tier; says how many tests of which tier ran
	@$(PY) -m tools.test all

bench: venv ## measure; results to docs/bench (PART=serving needs no cluster, PART=platform brings one up)
	@$(PY) -m tools.test $(call quoted,bench$(if $(PART),-$(PART)))

optimise: venv ## variants of MODEL (magika) by size, speed and accuracy, to docs/models; fails when a derived version does not keep its bound
	@$(PY) -m tools.optimise $(call quoted,$(or $(MODEL),magika))

prune: venv ## remove builds, images and environments from the cache that nobody used for DAYS (14)
	@$(PY) -m tools.cache $(if $(DAYS),--days=$(call quoted,$(DAYS)))

schema: venv ## regenerate stacks/schema.json
	@$(PY) -m stacks.schema
