#!/bin/sh
# library.sh [IMAGE]: builds library Linux: Debian's kernel source with the architecture of linux/library laid over it,
# and nothing else changed. Writes the kernel image to IMAGE, by default $KYOZON_CACHE/product/linux.elf.
#
# The result is kept in $KYOZON_CACHE/library under the hash of source version, overlay, interface and compiler; single
# objects are kept by ccache. The unpacked source is removed after the build. KYOZON_LIBRARY_TREE=FOLDER keeps it and
# the objects there, for work on the overlay.
set -eu

series=6.12
tree=$(cd "$(dirname "$0")/.." && pwd)
cache=${KYOZON_CACHE:?library: set KYOZON_CACHE, or run make}/library
image=${1:-$KYOZON_CACHE/product/linux.elf}
compiler=gcc-12

fail() { echo "library: $*" >&2; exit 1; }
log() { echo "library: $*" >&2; }

mkdir -p "$cache" "$(dirname "$image")"
# Others wait for the first.
exec 9>"$cache/lock"
flock 9

# --- the source ----------------------------------------------------------------------------------------------------
package=$(ls "$cache"/linux-source-$series*.deb 2>/dev/null | tail -n 1)
if [ -z "$package" ]; then
	log "downloading Debian's source of Linux $series (150 MB)"
	new=$(mktemp -d "$cache/download.XXXXXX")
	(cd "$new" && apt-get -q -o APT::Sandbox::User= download linux-source-$series) >"$cache/apt.log" 2>&1 || {
		rm -rf "$new"
		fail "cannot download linux-source-$series ($(grep '^E: ' "$cache/apt.log" | head -n 1)): is there a network?"
	}
	mv "$new"/*.deb "$cache/" && rm -rf "$new"
	package=$(ls "$cache"/linux-source-$series*.deb | tail -n 1)
fi

# --- is it built already? ------------------------------------------------------------------------------------------
overlay() {
	(cd "$tree" && find linux/library/arch crates/base/abi/include -type f | LC_ALL=C sort | xargs sha256sum)
}
hash=$({
	basename "$package"
	$compiler --version | head -n 1
	ld --version | head -n 1
	sed 's/^#.*//' "$tree/scripts/library.sh"
	overlay
} | sha256sum | cut -c1-16)
if [ ! -e "$cache/linux-$hash.elf" ]; then
	work=${KYOZON_LIBRARY_TREE:-$cache/tree}
	source=$work/linux-source-$series
	build=$work/build
	trap '[ -n "${KYOZON_LIBRARY_TREE:-}" ] || rm -rf "$work"' EXIT
	trap 'exit 1' INT TERM
	if [ ! -e "$source/Makefile" ]; then
		log "unpacking the source (some 10 seconds)"
		rm -rf "$source" && mkdir -p "$work"
		dpkg-deb --fsys-tarfile "$package" | tar -x -O --wildcards "*/linux-source-$series.tar.xz" | tar -xJ -C "$work" \
			--exclude="linux-source-$series/Documentation/*/*" --exclude='*/drivers/gpu/*.[ch]' \
			--exclude='*/sound/*.[ch]' --exclude='*/testing/*' --exclude='*/dts/*' ||
			fail "cannot unpack $package: is the disk full?"
	fi
	# Only the architecture's folder may differ from Debian's source.
	rm -rf "$source/arch/kyozon"
	cp -r "$tree/linux/library/arch/kyozon" "$source/arch/kyozon"
	mkdir -p "$source/arch/kyozon/include/interface"
	cp -r "$tree/crates/base/abi/include/kyozon" "$source/arch/kyozon/include/interface/"
	# Equal objects, wherever the tree is.
	export CCACHE_DIR="$cache/ccache" CCACHE_BASEDIR="$work" CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=500M
	export KBUILD_BUILD_TIMESTAMP="@0" KBUILD_BUILD_USER=kyozon KBUILD_BUILD_HOST=kyozon
	kbuild() { make -s -C "$source" O="$build" ARCH=kyozon CC="ccache $compiler" HOSTCC="ccache $compiler" "$@"; }
	kbuild library_defconfig >"$cache/build.log" 2>&1 || fail "cannot configure: see $cache/build.log"
	# An option that the configuration names must not have got lost by a dependency.
	defconfig=$source/arch/kyozon/configs/library_defconfig
	missing=$(grep '^CONFIG_.*=' "$defconfig" | grep -vxFf "$build/.config" | tr '\n' ' ')
	[ -z "$missing" ] || fail "the configuration lost $missing"
	log "building Linux $series as a library (some minutes, once)"
	start=$(date +%s)
	kbuild -j"$(nproc)" kyozon-linux.elf >>"$cache/build.log" 2>&1 &
	make=$!
	while kill -0 $make 2>/dev/null; do
		sleep 1
		now=$(($(date +%s) - start))
		[ $((now % 30)) = 0 ] && log "$(find "$build" -name '*.o' | wc -l) objects, $now s"
	done
	wait $make || fail "the kernel does not build ($(grep -m 1 'error' "$cache/build.log")): see $cache/build.log"
	undefined=$(nm -u "$build/vmlinux" | head -n 3 | tr '\n' ' ')
	[ -z "$undefined" ] || fail "undefined symbols: $undefined"
	rm -f "$cache"/linux-*.elf
	cp "$build/kyozon-linux.elf" "$cache/linux-$hash.new"
	mv "$cache/linux-$hash.new" "$cache/linux-$hash.elf"
fi
# A kernel that runs from the old file keeps it.
cmp -s "$cache/linux-$hash.elf" "$image" || { cp "$cache/linux-$hash.elf" "$image.new" && mv "$image.new" "$image"; }
