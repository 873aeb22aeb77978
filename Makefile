# On a fresh Debian 12, 'make demo' and 'make test' do everything, including the installation of what they need.

SHELL := /bin/sh
ifeq ($(KYOZON_CACHE),)
override KYOZON_CACHE := $(HOME)/.cache/kyozon
endif
export KYOZON_CACHE

# Every command runs with the toolchain chosen by setup.
ENV := . "$(KYOZON_CACHE)/env"
LAB := $(ENV) && "$$CARGO_TARGET_DIR/debug/kyozon-lab"

# Images, in the notation of scripts/images.sh. Those whose names end with -test are for tests only.
IMAGES := kyozon-colocation:layer kyozon-colocation:svm:own kyozon-colocation:alone:elf kyozon-microkernel:cokernel \
	kyozon-monitor-task:monitor:task kyozon-cokernel-test:cokernel-test kyozon-task-test:task-test:task \
	kyozon-text-sum:text-sum:task \
	kyozon-unikernel-examples:hello:unikernel kyozon-unikernel-examples:start:unikernel \
	kyozon-unikernel-examples:echo:unikernel kyozon-unikernel-test:unikernel-test:unikernel \
	kyozon-unikernel-test:bomb-test:unikernel kyozon-posix:posix:unikernel \
	kyozon-unikernel-examples:pingpong:unikernel kyozon-unikernel-examples:sort:unikernel \
	kyozon-unikernel-examples:matmul:unikernel kyozon-kv:kv:unikernel \
	kyozon-shm:shm:unikernel kyozon-unikernel-c:primes:c kyozon-unikernel-c:threads-test:c

.PHONY: help setup build library sysroot demo test bench wasmtime soak shell install clean

help: ## Show this help
	@echo "Kyozon: system software beside Linux"
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

# The suite starts no tests long after this.
export KYOZON_STARTED := $(shell date +%s)

# These need additional tools.
demo: FOR := demo
test: FOR := test
soak: FOR := soak
bench: FOR := bench

setup: ## Install missing packages, download kernels into the cache
	@scripts/setup.sh $(FOR)
	@$(MAKE) --no-print-directory build
	@$(LAB) fetch >/dev/null

build: ## Build programs and images
	@test -e "$(KYOZON_CACHE)/env" || { echo "make build: what it needs is not installed: run make setup" >&2; exit 1; }
	@$(ENV) && "$(CURDIR)/scripts/own-target.sh"
	@test -e "$(KYOZON_CACHE)/product/kyozon" || echo "build: programs and images (the first build takes some minutes)" >&2
	@$(ENV) && cd "$(CURDIR)" && "$${CARGO:-cargo}" build --locked --quiet -p kyozon-lab --bin kyozon-lab -p kyozon-counter --lib
	@$(ENV) && cd "$(CURDIR)" && "$${CARGO:-cargo}" build --locked --quiet -p kyozon-libc -p kyozon-libc-test-host
	@$(ENV) && RUSTFLAGS="-Ctarget-feature=+crt-static -Cstrip=symbols" "$${CARGO:-cargo}" build --locked --quiet \
		--target x86_64-unknown-linux-gnu -p kyozon-lab --bin kyozon-agent
	@$(ENV) && RUSTFLAGS="-Ctarget-feature=+crt-static -Cstrip=symbols" "$${CARGO:-cargo}" build --locked --quiet --release \
		--target x86_64-unknown-linux-gnu -p kyozon -p kyozon-linux -p kyozon-linux-exec -p kyozon-libc --bins
	@$(ENV) && cd "$(CURDIR)" && "$${CARGO:-cargo}" build --locked --quiet --release -p kyozon-join -p kyozon-linux-c
	@$(ENV) && RUSTFLAGS=-Cforce-frame-pointers=yes "$${CARGO:-cargo}" build --locked --quiet --release \
		--target x86_64-unknown-linux-gnu -p kyozon-kv --bin kv && mkdir -p "$(KYOZON_CACHE)/product" && \
		cp --remove-destination "$$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/release/kv" "$(KYOZON_CACHE)/product/kv-threads"
	@$(ENV) && "$(CURDIR)/scripts/images.sh" "$(KYOZON_CACHE)/product" $(IMAGES) && \
		cp --remove-destination "$$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/release/kyozon" "$(KYOZON_CACHE)/product/" && \
		"$(CURDIR)/scripts/text-sum.sh" "$(KYOZON_CACHE)/product" && \
		cp --remove-destination "$$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/release/kyozon-linux" \
		"$$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/release/kyozon-linux-exec" \
		"$$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/release/kyozon-cc" "$(KYOZON_CACHE)/product/" && \
		ln -sf kyozon-cc "$(KYOZON_CACHE)/product/kyozon-c++" && \
		"$(CURDIR)/scripts/checker.sh" "$(KYOZON_CACHE)/product/checker.S" && \
		objcopy --strip-debug "$$CARGO_TARGET_DIR/release/libkyozon_join.a" "$(KYOZON_CACHE)/product/libkyozon_join.a" && \
		objcopy --strip-debug "$$CARGO_TARGET_DIR/release/libkyozon_linux_c.a" "$(KYOZON_CACHE)/product/libkyozon-linux.a" && \
		objcopy --strip-debug "$$CARGO_TARGET_DIR/release/libkyozon_linux_c.so" "$(KYOZON_CACHE)/product/libkyozon-linux.so"

library: setup ## Build library Linux, and the C and C++ library for programs of its own
	@$(ENV) && "$(CURDIR)/scripts/library.sh"
	@$(MAKE) --no-print-directory sysroot

sysroot:
	@# Without a C++ compiler, C alone.
	@$(ENV) && sysroot=$$("$(CURDIR)/scripts/libcxx.sh" || "$(CURDIR)/scripts/libc.sh") && \
		ln -sfn "$$sysroot" "$(KYOZON_CACHE)/product/libc"

demo: setup ## Demonstrate the project on stock kernels
	@$(ENV) && "$(CURDIR)/scripts/library.sh"
	@$(LAB) demo

test: setup ## Run every test; NAMES="part ..." for those whose names contain a part, CHANGED=COMMIT for what changed
	@$(LAB) test $(NAMES) $(if $(CHANGED),--changed $(CHANGED))

bench: library ## Measure and write docs/results; TABLES="name ..." for some, CHECK=1 to check them against their bounds
	@$(LAB) bench $(TABLES) $(if $(CHECK),--check)

wasmtime: setup ## Build wasmtime, which 'make bench' then measures beside typed code (a quarter of an hour)
	@$(ENV) && "$${CARGO:-cargo}" install --quiet --locked --root "$(KYOZON_CACHE)/tools" --version 48.0.8 \
		--target-dir "$$CARGO_TARGET_DIR/tools" --no-default-features --features run,compile wasmtime-cli
	@$(ENV) && rm -rf "$$CARGO_TARGET_DIR/tools"

soak: setup ## Run every test, including the long ones
	@$(LAB) test --nightly $(NAMES)

shell: setup ## Start a guest with a shell on this terminal; ARGS="--kernel 6.1 --smp 2"
	@$(LAB) shell $(ARGS)

PREFIX ?= /usr/local
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
MODULE := $(DESTDIR)/usr/src/kyozon-$(VERSION)
TYPED := $(DESTDIR)/usr/src/kyozon-typed-$(VERSION)
PRODUCT := $(KYOZON_CACHE)/product

install: ## Install command, library, images, manual page and DKMS source; DESTDIR, PREFIX (/usr/local)
	@test -x "$(PRODUCT)/kyozon" || { echo "install: no build found in $(KYOZON_CACHE): run 'make setup' first, not as root; with sudo, pass KYOZON_CACHE" >&2; exit 1; }
	install -D -m 755 "$(PRODUCT)/kyozon" "$(DESTDIR)$(PREFIX)/bin/kyozon"
	install -d "$(DESTDIR)$(PREFIX)/lib/kyozon" "$(MODULE)/include/kyozon" "$(TYPED)/include/kyozon"
	install -m 644 "$(PRODUCT)"/*.bin "$(PRODUCT)/shm.elf" "$(PRODUCT)/posix.elf" "$(DESTDIR)$(PREFIX)/lib/kyozon"
	test ! -e "$(PRODUCT)/linux.elf" || install -m 755 "$(PRODUCT)/kyozon-linux" "$(PRODUCT)/kyozon-linux-exec" "$(PRODUCT)/linux.elf" \
		"$(DESTDIR)$(PREFIX)/lib/kyozon"
	install -m 755 "$(PRODUCT)/kyozon-cc" "$(DESTDIR)$(PREFIX)/lib/kyozon"
	ln -sf kyozon-cc "$(DESTDIR)$(PREFIX)/lib/kyozon/kyozon-c++"
	rm -rf "$(DESTDIR)$(PREFIX)/lib/kyozon/libc"
	test ! -e "$(PRODUCT)/libc" || cp -r --no-preserve=ownership "$(PRODUCT)/libc/." "$(DESTDIR)$(PREFIX)/lib/kyozon/libc"
	install -m 755 "$(PRODUCT)/libkyozon-linux.so" "$(PRODUCT)/libkyozon-linux.a" "$(DESTDIR)$(PREFIX)/lib"
	install -D -m 644 crates/library/capi/include/kyozon/linux.h "$(DESTDIR)$(PREFIX)/include/kyozon/linux.h"
	install -d "$(DESTDIR)$(PREFIX)/lib/pkgconfig"
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' packaging/kyozon-linux.pc \
		>"$(DESTDIR)$(PREFIX)/lib/pkgconfig/kyozon-linux.pc"
	install -m 644 "$(PRODUCT)/libkyozon_join.a" "$(DESTDIR)$(PREFIX)/lib"
	install -D -m 644 crates/unikernel/join/include/kyozon/join.h "$(DESTDIR)$(PREFIX)/include/kyozon/join.h"
	install -m 644 linux/module/Kbuild linux/module/*.[chS] "$(MODULE)"
	linux/module/image-hashes.sh "$(PRODUCT)"/*.bin >"$(MODULE)/image_hashes.h"
	install -m 644 crates/base/abi/include/kyozon/abi.h "$(MODULE)/include/kyozon"
	sed 's/@NAME@/kyozon/; s/@VERSION@/$(VERSION)/' packaging/dkms.conf >"$(MODULE)/dkms.conf"
	install -m 644 linux/typed/Kbuild linux/typed/*.[chS] "$(PRODUCT)/checker.S" "$(TYPED)"
	install -m 644 crates/base/abi/include/kyozon/abi.h "$(TYPED)/include/kyozon"
	sed 's/@NAME@/kyozon-typed/; s/@VERSION@/$(VERSION)/' packaging/dkms.conf >"$(TYPED)/dkms.conf"
	install -D -m 644 packaging/60-kyozon.rules "$(DESTDIR)/lib/udev/rules.d/60-kyozon.rules"
	install -d "$(DESTDIR)$(PREFIX)/lib/binfmt.d"
	sed 's|@PREFIX@|$(PREFIX)|' packaging/binfmt.conf >"$(DESTDIR)$(PREFIX)/lib/binfmt.d/kyozon-typed.conf"
	install -m 755 packaging/typed-run "$(DESTDIR)$(PREFIX)/lib/kyozon"
	install -d "$(DESTDIR)$(PREFIX)/share/man/man1" "$(DESTDIR)$(PREFIX)/share/bash-completion/completions"
	"$(PRODUCT)/kyozon" man >"$(DESTDIR)$(PREFIX)/share/man/man1/kyozon.1"
	"$(PRODUCT)/kyozon" completion bash >"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/kyozon"

clean: ## Remove builds from the cache; downloads stay
	@rm -rf "$(KYOZON_CACHE)/target" "$(KYOZON_CACHE)/modules" "$(KYOZON_CACHE)/libc" "$(KYOZON_CACHE)/product" "$(KYOZON_CACHE)/logs"
