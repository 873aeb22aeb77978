#!/bin/sh
# source.sh PACKAGE FILE SHA256 ...: prints the path of each file of a Debian source package in $KYOZON_CACHE/downloads,
# and downloads by apt what is missing there. A file is known by its SHA-256: Debian's version of a package changes with
# each revision, the upstream archive stays.
set -eu

fail() { echo "source: $*" >&2; exit 1; }

cache=${KYOZON_CACHE:-${HOME:?source: HOME is not set: set KYOZON_CACHE to the cache folder}/.cache/kyozon}
apt=${KYOZON_APT_PREFIX:+$KYOZON_APT_PREFIX/}
downloads=$cache/downloads

is_genuine() { echo "$2  $1" | sha256sum --check --status 2>/dev/null; }

# private_sources: apt's configuration for this machine's sources with their source packages, which few machines have
# enabled, in $work/apt. The machine's own lists of packages stay as they are.
private_sources() {
	mkdir -p "$work/apt/sources" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
	eval "$("${apt}apt-config" shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
	for file in "$list" "$parts"/*.list "$parts"/*.sources; do
		[ -f "$file" ] || continue
		case $file in
		*.list) sed -n 's/^deb\(-src\)\{0,1\}[[:space:]]/deb-src /p' ;;
		*.sources) sed 's/^Types:.*/Types: deb-src/' ;;
		esac <"$file" >"$work/apt/sources/${file##*/}"
	done
	# Hooks clean or inspect the machine's own lists.
	cat >"$work/apt/apt.conf" <<-END
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		APT::Sandbox::User "";
		Dir::Cache "$work/apt/cache";
		Dir::Etc::sourcelist "/dev/null";
		Dir::Etc::sourceparts "$work/apt/sources";
		Dir::State::lists "$work/apt/lists";
	END
	# A source that has no source packages is an error, but not of those that have them.
	"${apt}apt-get" -q -c "$work/apt/apt.conf" update >"$work/log" 2>&1 || true
}

reason() { grep -m 1 '^E: ' "$work/log" || echo "apt gave no reason"; }

# download PACKAGE FILE SHA256: puts the file into the cache.
download() {
	command -v "${apt}apt-get" >/dev/null || fail "apt-get not found: put $2 at $downloads/$2"
	if [ -z "$work" ]; then
		mkdir -p "$cache"
		work=$(mktemp -d "$cache/source.XXXXXX")
		echo "source: asking apt for source packages" >&2
		private_sources
	fi
	echo "source: downloading $2" >&2
	package=$("${apt}apt-cache" -c "$work/apt/apt.conf" showsrc "$1" 2>>"$work/log" |
		awk -v sha256="$3" '/^Version:/ { version = $2 } $1 == sha256 { print version; exit }')
	[ -n "$package" ] ||
		fail "no source of apt has the known $2 ($(reason)): is there a network, and a source of Debian 12?"
	mkdir "$work/$1"
	(cd "$work/$1" && "${apt}apt-get" -q -c "$work/apt/apt.conf" source --download-only --tar-only "$1=$package" \
		>>"$work/log" 2>&1) ||
		fail "cannot download $1 $package ($(reason)): is there a network?"
	is_genuine "$work/$1/$2" "$3" || fail "$2 differs from the known one: its SHA-256 is not $3"
	mkdir -p "$downloads"
	mv "$work/$1/$2" "$downloads/$2"
}

work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
[ $# != 0 ] || fail "usage: source.sh PACKAGE FILE SHA256 ..."
while [ $# != 0 ]; do
	[ $# -ge 3 ] || fail "usage: source.sh PACKAGE FILE SHA256 ..."
	is_genuine "$downloads/$2" "$3" || download "$1" "$2" "$3"
	echo "$downloads/$2"
	shift 3
done
