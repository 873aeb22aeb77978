#!/bin/sh
# Installs what is missing, decides which Rust to use, and writes the answer to $KYOZON_CACHE/env for the Makefile.
# Does nothing, and asks no network, where everything is there already.
set -eu

fail() { echo "setup: $*" >&2; exit 1; }
say() { echo "setup: $*" >&2; }

cache=${KYOZON_CACHE:-${HOME:?setup: HOME is not set: set KYOZON_CACHE to say where the cache is}/.cache/kyozon}
tree=$(cd "$(dirname "$0")/.." && pwd)

[ "$(uname -s)" = Linux ] || fail "this is $(uname -s): only Linux is supported"
[ "$(uname -m)" = x86_64 ] || fail "this CPU is $(uname -m): only x86_64 is supported"

case $cache$tree in
*[[:space:]:\'\"\$]*) fail "neither the cache ($cache) nor the tree ($tree) may have a space, colon, quote or dollar in its path: set KYOZON_CACHE, or move the tree" ;;
/*) ;;
*) fail "KYOZON_CACHE is $cache: it must begin with /" ;;
esac
mkdir -p "$cache" 2>/dev/null || fail "cannot create $cache: set KYOZON_CACHE to a folder that can be written"
# A filled cache has 4 GB; what is there already needs no more room.
need=4500000
[ -f "$cache/env" ] && need=300000
need=${KYOZON_MIN_FREE_KB:-$need}
free=$(df -Pk "$cache" | awk 'END { print $4 }')
[ "$free" -ge "$need" ] ||
	fail "$cache has $((free / 1024)) MiB free: at least $((need / 1024)) are needed; make room or set KYOZON_CACHE"

# --- Debian packages -----------------------------------------------------------------------------------------------
# Compilers and the kernel's build tools; the emulator; what goes into a guest; reading module archives.
packages="gcc gcc-12 libc6-dev make libelf1 pahole bc kmod xz-utils qemu-system-x86 seabios busybox-static ca-certificates"

missing() {
	for package; do
		case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) in ii*) ;; *) echo "$package" ;; esac
	done
}

# Sets $as to what makes a command root's; fails with the command to run by hand.
become_root() {
	command -v apt-get >/dev/null || fail "apt-get is not here: do by other means: $*"
	as=
	[ "$(id -u)" = 0 ] && return
	as="sudo -n"
	$as true 2>/dev/null && return
	as=sudo
	[ -t 0 ] && command -v sudo >/dev/null || fail "not root, and sudo asks for a password or is not here: run as root: $*"
}

install() {
	want=$(missing "$@" | tr '\n' ' ')
	[ -n "$want" ] || return 0
	become_root apt-get install $want
	say "installing: $want"
	log=$cache/apt.log
	# Where the index cannot be renewed, the one that is there may still do.
	$as apt-get update >"$log" 2>&1 || true
	$as env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 $want >"$log" 2>&1 ||
		fail "apt-get could not install $want($(grep '^E: ' "$log" | head -n 1)): is there a network? see $log"
}

[ -x "$(command -v dpkg-query)" ] || fail "dpkg is not here: only Debian 12 and its kin are supported"
# shellcheck disable=SC2086 # a list of words
install $packages

# Kernels are downloaded, not installed: apt's index must know them, unless they are in the cache.
for series in 6.12 6.1; do
	[ -f "$cache/kernels/$series-cloud.json" ] && continue
	apt-cache pkgnames "linux-image-$series." | grep -q cloud-amd64 && continue
	become_root apt-get update
	say "renewing apt's index: it knows no kernel $series"
	$as apt-get update >"$cache/apt.log" 2>&1 ||
		fail "apt-get update failed ($(grep '^E: ' "$cache/apt.log" | head -n 1)): is there a network? see $cache/apt.log"
done

# --- Rust ----------------------------------------------------------------------------------------------------------
# Wanted: cargo and rustc of at least 1.85, and 'core' for x86_64-unknown-none. Rustup's target where it is there or
# can be had; else Debian's web toolchain, which has the sources of 'core' to build it from.
target=x86_64-unknown-none
build_std="-Zbuild-std=core,alloc -Zbuild-std-features=compiler-builtins-mem"

new_enough() {
	version=$("$1" --version 2>/dev/null | awk '{ print $2 }') || return 1
	[ -n "$version" ] && [ "$(printf '%s\n1.85.0\n' "$version" | sort -V | head -n 1)" = 1.85.0 ]
}
has_target() { [ -d "$("$1" --print sysroot 2>/dev/null)/lib/rustlib/$target/lib" ]; }

rust=
if new_enough rustc && command -v cargo >/dev/null; then
	if has_target rustc; then
		rust=own
	elif command -v rustup >/dev/null; then
		say "asking rustup for $target"
		timeout 300 rustup target add $target >"$cache/rustup.log" 2>&1 && rust=own
	fi
fi
if [ -z "$rust" ]; then
	install rustc-web cargo-web rust-web-src rustfmt-web rust-web-clippy lld
	new_enough /usr/bin/rustc || fail "Debian's rustc is $(/usr/bin/rustc --version 2>&1 | head -n 1): at least 1.85 is needed"
	rust=debian
fi

bin=$cache/tools/bin
{
	echo "# Written by scripts/setup.sh."
	# What a user builds for his own CPU with is not for images that run beside Linux.
	echo "unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET"
	echo "export KYOZON_CACHE='$cache'"
	echo "export CARGO_TARGET_DIR='$cache/target'"
	echo "export KYOZON_AGENT='$cache/target/x86_64-unknown-linux-gnu/debug/kyozon-agent'"
	echo "export KYOZON_CARGO_DENY='$bin/cargo-deny'"
	if [ $rust = debian ]; then
		echo "export PATH=\"/usr/bin:\$PATH\" CARGO=/usr/bin/cargo RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1"
		echo "export KYOZON_BUILD_STD='$build_std'"
		# rustup brings a linker of its own; Debian's is the lld package's.
		echo "export CARGO_TARGET_X86_64_UNKNOWN_NONE_LINKER=ld.lld"
	fi
} >"$cache/env.new"
mv "$cache/env.new" "$cache/env"
. "$cache/env"

# --- what cargo brings ---------------------------------------------------------------------------------------------
# Fuzzers are linked with libFuzzer, which is C++.
if [ "${1:-}" = test ] && ! command -v c++ >/dev/null; then
	(install g++) || say "g++ could not be installed: the fuzzers will be skipped"
fi
if [ "${1:-}" = test ] && [ ! -x "$bin/cargo-deny" ]; then
	say "building cargo-deny, the licence gate (once, some minutes)"
	"${CARGO:-cargo}" install --quiet --locked --debug --root "$cache/tools" --target-dir "$cache/target/tools" \
		--version 0.18.3 cargo-deny >"$cache/cargo-deny.log" 2>&1 || say "cargo-deny could not be built, see $cache/cargo-deny.log: its test will be skipped"
	rm -rf "$cache/target/tools"
fi

cd "$tree"
"${CARGO:-cargo}" fetch --locked --quiet 2>"$cache/cargo.log" || "${CARGO:-cargo}" fetch --locked --offline --quiet 2>"$cache/cargo.log" ||
	fail "cargo cannot get the crates of Cargo.lock ($(grep -m 1 '^error' "$cache/cargo.log")): is there a network?"
