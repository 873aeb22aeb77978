#!/bin/sh
# wasi.sh NAME: prints a folder with a program of tests/typed/wasi/programs: NAME.wasm for WASI and NAME for this
# machine. The folder lies in $KYOZON_CACHE/wasi, is named by a hash of everything that it is made of, and is built if
# it is missing. SQLite comes unchanged from Debian's source package, which is downloaded once.
set -eu
unset MAKEFLAGS MFLAGS CPPFLAGS CFLAGS LDFLAGS

fail() { echo "wasi: $*" >&2; exit 1; }

cache=${KYOZON_CACHE:-${HOME:?wasi: HOME is not set: set KYOZON_CACHE to the cache folder}/.cache/kyozon}
tree=$(cd "$(dirname "$0")/.." && pwd)
version=3.40.1
sha256=aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655

name=${1:-}
tools="clang-14 wasm-ld-14 gcc"
[ "$name" != sqlite ] || tools="$tools make tclsh"
for program in $tools; do
	command -v $program >/dev/null || fail "$program not found: run make test, which installs what tests need"
done
[ -f /usr/lib/wasm32-wasi/libc.a ] || fail "wasi-libc not found: run make test, which installs what tests need"
cd "$tree/tests/typed/wasi/programs"
[ -f "$name.c" ] || fail "which program? Name one of: $(ls ./*.c | sed 's|./\(.*\).c|\1|' | tr '\n' ' ')"
hash=$({
	echo "$name"
	cat "$tree/scripts/wasi.sh"
	clang-14 --version
	gcc --version
	find . /usr/lib/wasm32-wasi -type f | LC_ALL=C sort | xargs sha256sum
} | sha256sum | cut -c 1-16)
folder=$cache/wasi/$hash
print_if_built() {
	[ -d "$folder" ] || return 0
	echo "$folder"
	exit
}
print_if_built

# One build at a time: a second one finds the first one's result.
mkdir -p "$cache/wasi"
exec 9>"$cache/wasi/lock"
flock 9
print_if_built
work=$(mktemp -d "$cache/wasi/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

wasi="clang-14 --target=wasm32-wasi -O1 -D_WASI_EMULATED_GETPID"
# The source file of all of SQLite, for both.
sqlite() {
	tar -xJf "$archive" -C "$work"
	source=$work/sqlite3-$version
	(cd "$source" && ./configure --disable-tcl --disable-readline && make sqlite3.c)
	options="-DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_OMIT_WAL -DSQLITE_MAX_MMAP_SIZE=0"
	# shellcheck disable=SC2086 # word lists
	$wasi -w $options -include wasi-unix.h -c "$source/sqlite3.c" -o "$work/sqlite-wasi.o"
	# shellcheck disable=SC2086 # a word list
	gcc -O0 -w $options -c "$source/sqlite3.c" -o "$work/sqlite.o"
	theirs="-I $source $work/sqlite-wasi.o -lwasi-emulated-getpid" ours="-I $source $work/sqlite.o -lm"
}
build() {
	theirs='' ours=''
	[ "$name" != sqlite ] || sqlite
	mkdir "$work/programs"
	# shellcheck disable=SC2086 # word lists
	$wasi -s "$name.c" $theirs -o "$work/programs/$name.wasm"
	# shellcheck disable=SC2086 # a word list
	gcc -O1 -D_GNU_SOURCE "$name.c" $ours -o "$work/programs/$name"
}
if [ "$name" = sqlite ]; then
	archive=$("$tree/scripts/source.sh" sqlite3 "sqlite3_$version.orig.tar.xz" $sha256)
	echo "wasi: building SQLite $version for WASI (once, about a minute)" >&2
fi
# A shell ignores set -e in conditions.
set +e
(set -e; build) >"$work/log" 2>&1
status=$?
set -e
if [ $status != 0 ]; then
	cp "$work/log" "$cache/wasi/log"
	fail "$name does not build, see $cache/wasi/log"
fi
mv -T "$work/programs" "$folder"
echo "$folder"
