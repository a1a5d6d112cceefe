# SPDX-License-Identifier: Apache-2.0
# `make help` lists the targets. Everything sets itself up; the second run does not set up again.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: help root setup build image release audit check unit test soak proof demo bench bench-api bench-etcd simulate control-plane controllers scorer cilium-agent api-test load-test cluster cluster-down cluster-test conformance clean

NODE := node_modules/.bin/node
CLIENT := $(wildcard ipam-plugin/client/*.c ipam-plugin/client/*.h) ipam-plugin/client/Makefile

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

setup: node_modules/.berth build/.packages ## install what is missing: npm packages, and Debian packages where there is apt-get

node_modules/.berth: package.json package-lock.json
	@echo "setting up: npm packages (about a minute)"
	@# not `npm ci`: the registry that the lock was made with lacks some platforms' builds of the linters. What the lock
	@# has is checked by its digest all the same; the Dockerfile uses `npm ci` for what goes into an image.
	@npm install --no-save --loglevel=error --no-progress >/dev/null
	@touch $@

build/.packages: scripts/packages.sh
	@mkdir -p build
	@bash scripts/packages.sh
	@touch $@

build: setup build/berth build/berthctl ## leave the CNI plugin at build/berth and the tool at build/berthctl

build/berth: build/.packages $(CLIENT)
	@$(MAKE) --no-print-directory -s -C ipam-plugin/client OUT=$(abspath $@)

build/berthctl: cli/berthctl.sh
	@mkdir -p build
	@ln -sf ../cli/berthctl.sh $@
	@ln -sf ../cli/berthctl.sh build/kubectl-berth

image: build ## the image of webhook and agents, build/berth-image.tar; ENGINE=docker, podman or buildah: from the Dockerfile
	@bash scripts/image.sh

release: build ## what whoever publishes signs: images, chart, berthctl, bills of materials, digests, provenance, in build/release
	@bash scripts/release.sh

# Needs nothing of the checkout but the lock: with OSV_DB it runs on a fresh clone without a network.
audit: ## compare the versions of the lock with known advisories; OSV_DB=FOLDER: with a copy of the OSV database
	@OSV_DB="$(OSV_DB)" bash scripts/audit.sh

check: setup ## format, lint, types, import boundaries and cycles
	@npm run --silent check

# one process or few for many files, leftovers, the slowest files, failures once more at the end: test/runner/
SUITE := $(NODE) test/runner/main.ts

unit: setup ## every unit and property test beside the sources; WATCH=1 stays and repeats those of what changes
	@$(SUITE) unit $(if $(WATCH),--watch)

test: build ## set up and pass all tests that need no API server, a tenth of what is random or repeated
	@$(SUITE) test

soak: control-plane controllers cilium-agent build ## what repeats, kills, mutates, overloads, fuzzes and simulates, at length; LIVES=100000: as many simulated
	@BERTH_LIVES="$(LIVES)" $(SUITE) soak

proof: control-plane controllers scorer cilium-agent build ## everything once and in full: on this host, with an API server, on a whole cluster
	@$(SUITE) proof
	@$(MAKE) --no-print-directory cluster-test

demo: build ## the main job, shown: from annotation to address to ping
	@bash examples/demo.sh

bench: build ## time an ADD against host-local, in one run
	@$(NODE) test/bench/main.ts

RUNS ?= 2000
SEED ?= $(shell date +%s)
simulate: setup ## random lives of a small cluster over the real code: make simulate RUNS=N SEED=N, with BLOCKS=1 nodes serve from blocks, with INTERFACES=1 pods ask for two interfaces
	@$(NODE) test/simulation/main.ts --runs $(RUNS) --seed $(SEED) --at "$(AT)" --blocks "$(BLOCKS)" --interfaces "$(INTERFACES)"

control-plane: setup ## build kube-apiserver, kubectl, etcd and helm once, from their Go modules, into the user's cache
	@bash test/control-plane/build.sh >/dev/null

controllers: setup ## the same for the controllers and the scheduler of Kubernetes, without which load-test leaves a day in a cluster out, and api-test edited lists
	@bash test/control-plane/build.sh kube-controller-manager kube-scheduler >/dev/null

scorer: control-plane ## the same for kube-score, without which what it says of the chart is not asked
	@bash test/control-plane/build.sh kube-score >/dev/null

cilium-agent: setup ## the same for Cilium's own code of an agent's addresses, which takes five minutes of a processor
	@bash test/cilium/build.sh >/dev/null

build/.containers: build/.packages scripts/packages.sh
	@bash scripts/packages.sh containers
	@touch $@

api-test: scorer build build/.containers ## what needs a real API server: the Kubernetes store, webhook, controllers and agents as processes
	@$(SUITE) api-test

load-test: control-plane build ## short loads: crowds of callers on one host, on a real API server crowds, rolling updates, isolation, a day, and etcd whose members die; at length they are in `make soak`
	@$(SUITE) load-test

bench-etcd: control-plane build ## addresses for containers of two hosts that share an etcd, beside a model of cni-ipam-etcd
	@$(NODE) test/etcd/adds.ts

bench-api: control-plane build ## time allocation, admission and re-creation on a real API server, in one run
	@$(NODE) test/bench-api/main.ts

NODES := kube-controller-manager kube-scheduler kubelet

build/.cluster: build/.packages scripts/packages.sh
	@bash scripts/packages.sh cluster
	@bash test/control-plane/build.sh kube-apiserver etcd kubectl helm $(NODES) >/dev/null
	@touch $@

root:
	@test "$$(id -u)" = 0 || { echo "a cluster needs root: it makes network namespaces and runs containerd"; exit 1; }

cluster: root build/.cluster image ## bring up a real cluster of two nodes on this machine (root), which stays, and print its KUBECONFIG
	@$(NODE) test/cluster/up.ts

cluster-down: setup ## take it away, and leave nothing behind
	@$(NODE) test/cluster/down.ts

cluster-test: root build/.cluster image ## pods on that cluster, or on one of its own: addresses, pings, drains, power cuts
	@$(NODE) test/cluster/run.ts

build/.conformance: build/.cluster test/control-plane/conformance/go.mod
	@bash scripts/packages.sh conformance
	@bash test/control-plane/build.sh kube-proxy agnhost e2e.test >/dev/null
	@touch $@

conformance: root build/.conformance image ## Kubernetes' own tests with Berth serving every pod, on a cluster that comes and goes; SPECS='PATTERN': those
	@$(NODE) test/conformance/main.ts $(if $(SPECS),'$(SPECS)')

clean: ## remove what was built
	rm -rf build node_modules/.berth
