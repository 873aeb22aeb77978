# Two commands do everything on a fresh Debian 12: 'make demo' and 'make test'. Both install what they need.

SHELL := /bin/sh
KYOZON_CACHE ?= $(HOME)/.cache/kyozon
export KYOZON_CACHE

# Every command runs with the toolchain that setup chose.
ENV := . "$(KYOZON_CACHE)/env"
LAB := $(ENV) && "$$CARGO_TARGET_DIR/debug/kyozon-lab"

# Flat images that run beside Linux, CRATE:BIN; the last ones are for tests only.
IMAGES := kyozon-colocation:layer kyozon-cokernel-test:cokernel-test

.PHONY: help setup build demo test bench soak shell install clean

help: ## Show these words
	@echo "Kyozon: system software beside Linux"
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## Install what is missing, download kernels into the cache
	@scripts/setup.sh
	@$(MAKE) --no-print-directory build
	@$(LAB) fetch >/dev/null

build: ## Build the host's programs
	@$(ENV) && cd "$(CURDIR)" && "$${CARGO:-cargo}" build --locked --quiet -p kyozon-lab --bin kyozon-lab
	@$(ENV) && RUSTFLAGS="-Ctarget-feature=+crt-static -Cstrip=symbols" "$${CARGO:-cargo}" build --locked --quiet \
		--target x86_64-unknown-linux-gnu -p kyozon-lab --bin kyozon-agent -p kyozon --bin kyozon
	@$(ENV) && "$(CURDIR)/scripts/images.sh" "$(KYOZON_CACHE)/product" $(IMAGES) && \
		cp "$$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/debug/kyozon" "$(KYOZON_CACHE)/product/"

demo: setup ## Show what the project does, on real kernels
	@$(LAB) demo

test: ## Run every test; NAMES="part ..." runs those whose name contains a part
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory setup
	@$(LAB) test $(NAMES)

bench: setup ## Measure and write docs/results; TABLES="name ..." for some, CHECK=1 to hold them against their bounds
	@$(LAB) bench $(TABLES) $(if $(CHECK),--check)

soak: ## Run every test, also what takes long
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory setup
	@$(LAB) test --nightly $(NAMES)

shell: setup ## A guest with a shell on this terminal; ARGS="--kernel 6.1 --smp 2"
	@$(LAB) shell $(ARGS)

install: ## Install the operator's command: nothing of it exists yet
	@echo "install: there is nothing to install yet: the operator's command is not written" >&2; exit 1

clean: ## Remove builds from the cache; downloads stay
	@rm -rf "$(KYOZON_CACHE)/target" "$(KYOZON_CACHE)/modules" "$(KYOZON_CACHE)/logs"
