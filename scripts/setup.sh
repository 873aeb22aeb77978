#!/bin/sh
# setup.sh [demo|test|soak|bench]: installs missing packages, chooses a Rust toolchain, and writes it to
# $KYOZON_CACHE/env for the Makefile. Changes nothing and uses no network if everything is installed.
set -eu

fail() { echo "setup: $*" >&2; exit 1; }
log() { echo "setup: $*" >&2; }

cache=${KYOZON_CACHE:-${HOME:?setup: HOME is not set: set KYOZON_CACHE to the cache folder}/.cache/kyozon}
tree=$(cd "$(dirname "$0")/.." && pwd)

[ "$(uname -s)" = Linux ] || fail "this is $(uname -s): only Linux is supported"
[ "$(uname -m)" = x86_64 ] || fail "this CPU is $(uname -m): only x86_64 is supported"

case $cache$tree in
*[[:space:]:\'\"\$]*)
	fail "the path of the cache ($cache) or of the tree ($tree) has a space, colon, quote or dollar:" \
		"set KYOZON_CACHE, or move the tree"
	;;
/*) ;;
*) fail "KYOZON_CACHE is $cache: it must begin with /" ;;
esac
mkdir -p "$cache" 2>/dev/null || fail "cannot create $cache: set KYOZON_CACHE to a writable folder"
# A complete cache takes 5 GB, and 2 GB more while library Linux is built; an existing one needs little more.
need=6500000
[ -f "$cache/env" ] && need=300000
need=${KYOZON_MIN_FREE_KB:-$need}
free=$(df -Pk "$cache" | awk 'END { print $4 }')
[ "$free" -ge "$need" ] ||
	fail "$cache has $((free / 1024)) MiB free, but $((need / 1024)) are needed: free some space, or set KYOZON_CACHE"

# --- Debian packages -----------------------------------------------------------------------------------------------
# Compilers and the kernel's build tools; the emulator; the guests' programs; tools for module archives.
packages="gcc gcc-12 libc6-dev make libelf1 pahole bc kmod xz-utils qemu-system-x86 seabios busybox-static"
packages="$packages ca-certificates"
# Library Linux is built from Debian's kernel source.
packages="$packages bison ccache flex"
# Its disks are made and checked by the file systems' own tools.
packages="$packages btrfs-progs dosfstools e2fsprogs erofs-utils exfatprogs qemu-utils xfsprogs"
# Programs that run on it unmodified.
packages="$packages curl iperf3 python3 sqlite3 wget"

missing() {
	for package; do
		case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) in ii*) ;; *) echo "$package" ;; esac
	done
}

# become_root COMMAND...: sets $as to the prefix that runs a command as root; fails with the command to run by hand.
become_root() {
	command -v apt-get >/dev/null || fail "apt-get not found: install by other means: $*"
	as=
	[ "$(id -u)" = 0 ] && return
	as="sudo -n"
	$as true 2>/dev/null && return
	as=sudo
	[ -t 0 ] && command -v sudo >/dev/null || fail "not root, and sudo is missing or needs a password: run as root: $*"
}

install() {
	want=$(missing "$@" | tr '\n' ' ')
	[ -n "$want" ] || return 0
	become_root apt-get install $want
	log "installing: $want"
	log=$cache/apt.log
	# If the index cannot be updated, the existing one may suffice.
	$as apt-get update >"$log" 2>&1 || true
	$as env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 $want >"$log" 2>&1 ||
		fail "apt-get could not install $want($(grep '^E: ' "$log" | head -n 1)): is there a network? see $log"
}

[ -x "$(command -v dpkg-query)" ] || fail "dpkg not found: only Debian 12 and its derivatives are supported"
# shellcheck disable=SC2086 # a word list
install $packages

# Kernels are downloaded, not installed: apt's index must know them, unless they are in the cache.
for series in 6.12 6.1; do
	[ -f "$cache/kernels/$series-cloud.json" ] && continue
	apt-cache pkgnames "linux-image-$series." | grep -q cloud-amd64 && continue
	become_root apt-get update
	log "updating apt's index: it has no kernel $series"
	$as apt-get update >"$cache/apt.log" 2>&1 ||
		fail "apt-get update failed ($(grep '^E: ' "$cache/apt.log" | head -n 1)): is there a network? see $cache/apt.log"
done

# --- Rust ----------------------------------------------------------------------------------------------------------
# Needed: cargo and rustc of the workspace's rust-version or newer, and 'core' for x86_64-unknown-none: from rustup's
# target if it is installed or can be added, otherwise built from the sources of Debian's web toolchain.
target=x86_64-unknown-none
build_std="-Zbuild-std=core,alloc -Zbuild-std-features=compiler-builtins-mem"

floor=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$tree/Cargo.toml")
new_enough() {
	version=$("$1" --version 2>/dev/null | awk '{ print $2 }') || return 1
	[ -n "$version" ] && [ "$(printf '%s\n%s\n' "$version" "$floor" | sort -V | head -n 1)" = "$floor" ]
}
has_target() { [ -d "$("$1" --print sysroot 2>/dev/null)/lib/rustlib/$target/lib" ]; }

rust=
if new_enough rustc && command -v cargo >/dev/null; then
	if has_target rustc; then
		rust=own
	elif command -v rustup >/dev/null; then
		log "adding $target with rustup"
		timeout 300 rustup target add $target >"$cache/rustup.log" 2>&1 && rust=own
	fi
fi
if [ -z "$rust" ]; then
	install rustc-web cargo-web rust-web-src rustfmt-web rust-web-clippy lld
	new_enough /usr/bin/rustc ||
		fail "Debian's rustc is $(/usr/bin/rustc --version 2>&1 | head -n 1): at least $floor is needed"
	rust=debian
fi

bin=$cache/tools/bin
{
	echo "# Written by scripts/setup.sh."
	# A user's flags for the local CPU do not suit images that run beside Linux.
	echo "unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET"
	echo "export KYOZON_CACHE='$cache'"
	echo "export CARGO_TARGET_DIR='$cache/target'"
	echo "export KYOZON_AGENT='$cache/target/x86_64-unknown-linux-gnu/debug/kyozon-agent'"
	echo "export KYOZON_CARGO_DENY='$bin/cargo-deny'"
	if [ $rust = debian ]; then
		echo "export PATH=\"/usr/bin:\$PATH\" CARGO=/usr/bin/cargo RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1"
		echo "export KYOZON_BUILD_STD='$build_std'"
		# rustup includes a linker; Debian's is in the package lld.
		echo "export CARGO_TARGET_X86_64_UNKNOWN_NONE_LINKER=ld.lld"
	fi
} >"$cache/env.new"
mv "$cache/env.new" "$cache/env"
. "$cache/env"

# --- tools and crates from cargo -----------------------------------------------------------------------------------
# Fuzzers link libFuzzer, which is C++.
tests='' measures='' shows=''
case ${1:-} in
test | soak) tests=yes ;;
bench) measures=yes ;;
demo) shows=yes ;;
esac
if [ -n "$tests" ] && ! command -v c++ >/dev/null; then
	(install g++) || log "cannot install g++: the fuzzers will be skipped"
fi
# The key-value store is tested and measured with Redis' own client.
if [ -n "$tests$measures" ] && ! command -v redis-benchmark >/dev/null; then
	(install redis-tools) || log "cannot install redis-tools: a test of the key-value store will be skipped"
fi
# Library Linux is measured beside User-Mode Linux.
if [ -n "$measures" ] && ! command -v linux.uml >/dev/null; then
	(install user-mode-linux) || log "cannot install user-mode-linux: its rows of a table will be missing"
fi
# Mounts by users other than root are made by the set-user-id program of FUSE.
if [ -n "$tests" ] && ! command -v fusermount3 >/dev/null; then
	(install fuse3) || log "cannot install fuse3: a test of mounts will be skipped"
fi
# What is copied into an image and out of it has extended attributes.
if [ -n "$tests" ] && ! command -v setfattr >/dev/null; then
	(install attr) || log "cannot install attr: tests of file systems will fail"
fi
# C programs are compiled to WebAssembly for typed code. Tcl puts SQLite's source file together.
wasi="clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32 tcl"
# shellcheck disable=SC2086 # a word list
if [ -n "$tests$measures$shows" ] && [ -n "$(missing $wasi)" ]; then
	(install $wasi) || log "cannot install $wasi: programs of WASI will be skipped"
fi
# Typed code is measured beside wasm2c.
if [ -n "$measures" ] && ! command -v wasm2c >/dev/null; then
	(install wabt) || log "cannot install wabt: a column of a table will be missing"
fi
# The C and C++ library for programs on a host, and the stock C library that they are compared with.
if [ -n "$tests" ] && ! command -v musl-gcc >/dev/null; then
	(install musl-tools) || log "cannot install musl-tools: tests of the C library will fail"
fi
if [ -n "$tests" ]; then
	"$tree/scripts/libcxx.sh" >/dev/null || log "cannot build the C and C++ library: their tests will fail"
	# Standard libraries for programs that tests compile.
	for std in x86_64-unknown-linux-musl wasm32-wasip1; do
		[ $rust = own ] && command -v rustup >/dev/null || continue
		[ ! -d "$(rustc --print target-libdir --target $std)" ] || continue
		log "adding $std with rustup"
		timeout 300 rustup target add $std >"$cache/rustup.log" 2>&1 || log "cannot add $std: a test will be skipped"
	done
fi
if [ "${1:-}" = soak ] && [ ! -x "$bin/cargo-deny" ]; then
	log "building cargo-deny, for known vulnerabilities (once, some minutes)"
	"${CARGO:-cargo}" install --quiet --locked --debug --root "$cache/tools" --target-dir "$cache/target/tools" \
		--version 0.18.3 cargo-deny >"$cache/cargo-deny.log" 2>&1 ||
		log "cannot build cargo-deny, see $cache/cargo-deny.log: its test will be skipped"
	rm -rf "$cache/target/tools"
fi

# Programs of others that tests compile.
[ -z "$tests" ] || "${CARGO:-cargo}" fetch --locked --quiet --manifest-path "$tree/tests/library/libc/real/Cargo.toml" \
	2>"$cache/cargo.log" || log "cannot download Lua's source: a test will fail unless it is there"

cd "$tree"
"${CARGO:-cargo}" fetch --locked --quiet 2>"$cache/cargo.log" ||
	"${CARGO:-cargo}" fetch --locked --offline --quiet 2>"$cache/cargo.log" ||
	fail "cargo cannot download the crates of Cargo.lock ($(grep -m 1 '^error' "$cache/cargo.log")): is there a network?"
