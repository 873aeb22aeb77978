#!/bin/sh
# libc.sh: prints the folder of the C library whose system calls are calls of its host (crates/library/libc), as a
# sysroot for kyozon-cc. It lies in $KYOZON_CACHE/libc, is named by a hash of everything that it is made of, and is
# built if it is missing: from Debian's source package of musl, which is downloaded once.
set -eu
# What make and a user have set for other programs.
unset MAKEFLAGS MFLAGS CPPFLAGS LDFLAGS LIBCC CROSS_COMPILE

fail() { echo "libc: $*" >&2; exit 1; }
log() { echo "libc: $*" >&2; }

cache=${KYOZON_CACHE:-${HOME:?libc: HOME is not set: set KYOZON_CACHE to the cache folder}/.cache/kyozon}
tree=$(cd "$(dirname "$0")/.." && pwd)
version=1.2.3
sha256=7d5b0b6062521e4627e099e4c9dc8248d32a30285e959b7eecaa780cf8cfd4a4
gcc=${KYOZON_GCC:-gcc}

command -v "$gcc" >/dev/null || fail "$gcc not found: run make setup, or set KYOZON_GCC"
cd "$tree/crates/library/libc"
hash=$({
	cat "$tree/scripts/libc.sh"
	"$gcc" --version
	ld --version
	find gcc.specs include musl -type f | LC_ALL=C sort | xargs sha256sum
} | sha256sum | cut -c 1-16)
sysroot=$cache/libc/$hash
print_if_built() {
	[ -d "$sysroot" ] || return 0
	echo "$sysroot"
	exit
}
print_if_built

# Number of instructions in an object file or a library that enter a kernel.
kernel_entries() {
	objdump -d --no-show-raw-insn "$1" >"$work/code" || fail "cannot disassemble $1"
	grep -cE '^ +[0-9a-f]+:[[:space:]]+(syscall|sysenter|int +\$0x80)' "$work/code" || true
}

# One build at a time: a second one finds the first one's result.
mkdir -p "$cache/libc"
exec 9>"$cache/libc/lock"
flock 9
print_if_built
work=$(mktemp -d "$cache/libc/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

archive=$("$tree/scripts/source.sh" musl "musl_$version.orig.tar.gz" $sha256)

log "building musl $version (once, about a minute)"
tar -xzf "$archive" -C "$work"
source=$work/musl-$version
cp -r musl/. include "$source"
cd "$source/src"
# CVE-2025-26519: the decoder of EUC-KR read behind its table (musl, commit e5adcd97).
sed -i 's/if (c >= 93 || c>=0xc6-0x81 \&\& d>0x52)/if (c > 0xc6-0x81 || c == 0xc6-0x81 \&\& d > 0x52)/' locale/iconv.c
grep -q 'c == 0xc6-0x81' locale/iconv.c || fail "cannot correct iconv.c"
# Assembly that enters the kernel. In place of the last two, musl has portable C.
rm thread/x86_64/__set_thread_area.s thread/x86_64/__unmapself.s thread/x86_64/clone.s \
	process/x86_64/vfork.s signal/x86_64/restore.s
cd "$source"
{
	CC=$gcc ./configure --prefix= --disable-shared --disable-wrapper CFLAGS="-O2 -fPIE" &&
		make -j"$(nproc)" && make DESTDIR="$work/sysroot" install-libs install-headers
} >"$work/log" 2>&1 || {
	cp "$work/log" "$cache/libc/log"
	fail "musl does not build, see $cache/libc/log"
}
cp COPYRIGHT "$work/sysroot"
cp "$tree/crates/library/libc/gcc.specs" "$work/sysroot/lib"

# There is one kind of program, and one place in it that enters a kernel: to say that it has no host.
cd "$work/sysroot/lib"
rm -f crt1.o Scrt1.o
for file in *.a crti.o crtn.o; do
	[ "$(kernel_entries "$file")" = 0 ] ||
		fail "$file has a system-call instruction: replace the file of musl that it comes from"
done
count=$(kernel_entries rcrt1.o)
[ "$count" = 1 ] || fail "rcrt1.o has $count system-call instructions, not 1: see crt/rcrt1.c"

mv -T "$work/sysroot" "$sysroot"
echo "$sysroot"
