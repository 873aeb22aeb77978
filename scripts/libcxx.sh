#!/bin/sh
# libcxx.sh: prints the folder of the C library of libc.sh with gcc's C++ library, as a sysroot for kyozon-cc and
# kyozon-c++. It lies in $KYOZON_CACHE/libc and is built if it is missing: from Debian's package of the compiler's
# source, which is downloaded once.
set -eu
# What make and a user have set for other programs.
unset MAKEFLAGS MFLAGS CPPFLAGS CFLAGS CXXFLAGS LDFLAGS CONFIG_SITE

fail() { echo "libcxx: $*" >&2; exit 1; }
log() { echo "libcxx: $*" >&2; }

cache=${KYOZON_CACHE:-${HOME:?libcxx: HOME is not set: set KYOZON_CACHE to the cache folder}/.cache/kyozon}
tree=$(cd "$(dirname "$0")/.." && pwd)
gcc=${KYOZON_GCC:-gcc}
gxx=${KYOZON_GXX:-g++}
target=x86_64-linux-musl

command -v "$gxx" >/dev/null || fail "$gxx not found: run apt-get install g++, or set KYOZON_GXX"
version=$("$gxx" -dumpfullversion)
[ "$("$gcc" -dumpfullversion)" = "$version" ] ||
	fail "$gcc and $gxx have different versions: set KYOZON_GCC, KYOZON_GXX"
libc=$("$tree/scripts/libc.sh")
hash=$({
	cat "$tree/scripts/libcxx.sh" "$tree/crates/library/libc/gxx.specs"
	"$gxx" --version
	basename "$libc"
} | sha256sum | cut -c 1-16)
sysroot=$cache/libc/$hash
print_if_built() {
	[ -d "$sysroot" ] || return 0
	echo "$sysroot"
	exit
}
print_if_built
# One build at a time: a second one finds the first one's result.
exec 9>"$cache/libc/lock-c++"
flock 9
print_if_built
work=$(mktemp -d "$cache/libc/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# What the library is built from, of the whole compiler.
archive=$cache/downloads/libstdc++-$version.tar.xz
if [ ! -f "$archive" ]; then
	package=gcc-${version%%.*}-source
	apt=${KYOZON_APT_PREFIX:+$KYOZON_APT_PREFIX/}apt-get
	command -v "$apt" >/dev/null || fail "apt-get not found: put the C++ library's source at $archive"
	log "downloading Debian's source of gcc $version (83 MB)"
	(cd "$work" && "$apt" -q -o APT::Sandbox::User= download "$package") >"$work/log" 2>&1 ||
		fail "cannot download $package ($(grep -m 1 '^E: ' "$work/log" || echo "apt gave no reason")): is there a network?"
	mkdir "$work/source"
	dpkg-deb --fsys-tarfile "$work/$package"_*.deb | tar -x -O --wildcards '*/gcc-*.tar.xz' |
		tar -xJ -C "$work/source" --strip-components=1 --wildcards --exclude='*/testsuite/[0-9et]*' \
			--exclude='ChangeLog*' --exclude='*/doc/html' --exclude='*/doc/xml' \
			'*/libstdc++-v3' '*/libgcc' '*/include' '*/libiberty' '*/config' '*/gcc/BASE-VER' '*/gcc/DATESTAMP' \
			'*/COPYING3' '*/COPYING.RUNTIME' '*/config.*' '*/config-ml.in' '*/install-sh' '*/ltmain.sh' '*/missing' \
			'*/mkinstalldirs' '*/move-if-change' '*/multilib.am' ||
		fail "cannot unpack $package: is the disk full?"
	[ "$(cat "$work/source/gcc/BASE-VER")" = "$version" ] ||
		fail "$package is gcc $(cat "$work/source/gcc/BASE-VER"), the compiler is $version: run apt-get upgrade"
	mkdir -p "$cache/downloads"
	tar -cJf "$work/archive" -C "$work/source" .
	mv "$work/archive" "$archive"
	rm -rf "$work/source" "$work"/*.deb
fi

log "building the C++ library of gcc $version (once, about a minute)"
mkdir "$work/source" "$work/build"
tar -xJf "$archive" -C "$work/source"
# In a static program, a weak reference to a function of POSIX threads would be null.
sed -i 's/^#define GTHREAD_USE_WEAK 1$/#define GTHREAD_USE_WEAK 0/' "$work/source/libgcc/gthr.h"
[ "$(grep -c 'GTHREAD_USE_WEAK 0' "$work/source/libgcc/gthr.h")" -gt 1 ] || fail "cannot correct gthr.h"
cp -r "$libc" "$work/sysroot"
sed -i '/^@c++:/,$d' "$work/sysroot/lib/gcc.specs"
for language in gcc gxx; do
	eval "compiler=\$$language"
	printf '#!/bin/sh\nexec %s --sysroot=%s -specs=%s -fPIE %s "$@"\n' "$compiler" "$work/sysroot" \
		"$work/sysroot/lib/gcc.specs" "$([ $language = gcc ] || echo -nostdinc++)" >"$work/$language"
	chmod +x "$work/$language"
done
# What configure's tests find in a build of the whole compiler.
mkdir "$work/libgcc"
cp "$work/source/libgcc/gthr-posix.h" "$work/libgcc/gthr-default.h"
ar rc "$work/sysroot/lib/libstdc++.a"
cd "$work/build"
{
	# --host is another system than --build: the programs of configure's tests must not be started.
	CC=$work/gcc CXX=$work/gxx CFLAGS=-O2 CXXFLAGS=-O2 "$work/source/libstdc++-v3/configure" --prefix= \
		--build=x86_64-linux-gnu --host=$target --disable-multilib --disable-nls --disable-shared \
		--disable-libstdcxx-pch --disable-libstdcxx-dual-abi --with-gxx-include-dir=/include/c++ &&
		grep -q '^#define _GLIBCXX_HAS_GTHREADS 1' config.h && make -j"$(nproc)" && make DESTDIR="$work/sysroot" install
} >"$work/log" 2>&1 || {
	cp "$work/log" "$cache/libc/log"
	fail "the C++ library does not build, see $cache/libc/log"
}
cp "$work/source/COPYING3" "$work/source/COPYING.RUNTIME" "$work/sysroot"
cd "$work/sysroot"
# Paths in these are the installation's, and of no use.
rm -rf share lib/*.la lib/*.py
cat "$tree/crates/library/libc/gxx.specs" >>lib/gcc.specs
for file in lib/libstdc++.a lib/libsupc++.a; do
	objdump -d --no-show-raw-insn $file >"$work/code" || fail "cannot disassemble $file"
	! grep -qE '^ +[0-9a-f]+:[[:space:]]+(syscall|sysenter|int +\$0x80)' "$work/code" ||
		fail "$file has a system-call instruction"
done
mv -T "$work/sysroot" "$sysroot"
echo "$sysroot"
