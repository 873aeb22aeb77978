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
archive=$cache/downloads/musl_$version.orig.tar.gz
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

is_genuine() { echo "$sha256  $1" | sha256sum --check --status; }

# private_sources FOLDER: apt's configuration for this machine's sources with their source packages, which few machines
# have enabled, in FOLDER. The machine's own lists of packages stay as they are.
private_sources() {
	mkdir -p "$1/sources" "$1/lists/partial" "$1/cache/archives/partial"
	eval "$("${apt}apt-config" shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
	for file in "$list" "$parts"/*.list "$parts"/*.sources; do
		[ -f "$file" ] || continue
		case $file in
		*.list) sed -n 's/^deb\(-src\)\{0,1\}[[:space:]]/deb-src /p' ;;
		*.sources) sed 's/^Types:.*/Types: deb-src/' ;;
		esac <"$file" >"$1/sources/${file##*/}"
	done
	# Hooks clean or inspect the machine's own lists.
	cat >"$1/apt.conf" <<-END
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		APT::Sandbox::User "";
		Dir::Cache "$1/cache";
		Dir::Etc::sourcelist "/dev/null";
		Dir::Etc::sourceparts "$1/sources";
		Dir::State::lists "$1/lists";
	END
}

reason() { grep -m 1 '^E: ' "$1" || echo "apt gave no reason"; }

# download FOLDER: puts musl's source archive into the cache, by way of FOLDER.
download() {
	apt=${KYOZON_APT_PREFIX:+$KYOZON_APT_PREFIX/}
	command -v "${apt}apt-get" >/dev/null || fail "apt-get not found: put musl $version's source archive at $archive"
	log "downloading musl $version"
	private_sources "$1/apt"
	# A source that has no source packages is an error, but not of those that have them.
	"${apt}apt-get" -q -c "$1/apt/apt.conf" update >"$1/log" 2>&1 || true
	# Debian's version changes with each revision of the package; the archive stays.
	package=$("${apt}apt-cache" -c "$1/apt/apt.conf" showsrc musl 2>>"$1/log" |
		awk -v sha256=$sha256 '/^Version:/ { version = $2 } $1 == sha256 { print version; exit }')
	[ -n "$package" ] ||
		fail "no source of apt has musl $version ($(reason "$1/log")): is there a network, and a source of Debian 12?"
	(cd "$1" && "${apt}apt-get" -q -c apt/apt.conf source --download-only --tar-only "musl=$package" >>log 2>&1) ||
		fail "cannot download musl $package ($(reason "$1/log")): is there a network?"
	is_genuine "$1/${archive##*/}" || fail "${archive##*/} differs from the known one: its SHA-256 is not $sha256"
	mkdir -p "$cache/downloads"
	mv "$1/${archive##*/}" "$archive"
}

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

[ -f "$archive" ] && is_genuine "$archive" || download "$work"

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
