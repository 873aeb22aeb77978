#!/bin/sh
# operands.sh: copies by several forms of paths into an image and out of it. Results must be those of GNU cp on the
# host. Prints one line for each difference, and a last one.
set -u
# A folder of its own: what another case left there may be a link.
cd "$(mktemp -d "$SCRATCH/work.XXXXXX")" || exit 1
PATH=$PATH:/usr/sbin:/sbin
fs() { "$KYOZON_PRODUCT/kyozon-linux" fs "$@"; }
export KYOZON_LINUX="$KYOZON_PRODUCT/linux.elf"

mkdir -p base/d/sub base/t/d base/sparse
echo 1 >base/f; echo 2 >base/d/f; echo 3 >base/d/sub/x; echo 4 >base/t/d/f
ln -s f base/sl; ln -s d base/sd; ln -s nowhere base/dang
# The tree as a line for each entry: type, rights, links' targets, contents.
show() {
	(cd "$1" && find . -mindepth 1 ! -name lost+found -printf '%P %y %m %l\n' -type f -exec cat {} \;) | LC_ALL=C sort
}

# same FLAGS FROM... TO: in one file system, on the host and in an image.
same() {
	rm -rf host out; cp -a base host; truncate -s 16M a.img; mkfs.ext4 -q -E root_owner -d base a.img
	(cd host && cp "$@" 2>/dev/null); expected=$?
	words=
	for word; do case $word in -*) words="$words $word" ;; *) words="$words a.img:/$word" ;; esac; done
	fs cp $words 2>error; status=$?
	mkdir out && fs cp -r a.img:/ out 2>>error
	[ $expected = $status ] || echo "cp $*: status $status, not $expected: $(cat error)"
	show host >want; show out >got
	cmp -s want got || { echo "cp $*:"; diff want got; cat error; }
}
same f new
same sl f
same sl new
same -r sl new
same -r dang new
same -r d/. t
same -r d t/
same -r d newd/
same f newd/
same -r d new
same f d/f t
same nope f t
same d f t
same -a sl sd dang t
ln base/f base/hard; ln -s ../f base/t/to; same d/f sl; same d/f t/to; same f hard; same hard sl; rm base/hard
same -r sd/ t
rm -rf host; mkdir host
# A folder is not copied into itself, however the target is named.
fs cp -r a.img:/d a.img:/sd 2>&1; fs cp -r a.img:/d a.img:/d/sub/new 2>&1; fs cp -r a.img:/ a.img:/d/new 2>&1
fs find a.img:/d --type d
# Everything out of an image, to a name that does not exist.
fs cp -r a.img:/ host/new; show host/new >got; mkdir out2; fs cp -r a.img:/ out2; show out2 >want; cmp want got
# Devices and pipes of the host are written and read, not replaced.
mkfifo pipe; { read line <pipe; echo "read $line"; } & fs cp a.img:/f pipe; wait $!
ln -s /proc/self/fd/1 stdout; fs cp a.img:/f stdout | cat; [ -L stdout ] || echo "the link is gone"
if mknod null c 1 3 2>/dev/null; then fs cp a.img:/f null; [ -c null ] || echo "the device is gone"; fi
echo piped | fs cp /dev/stdin a.img:/from-pipe && fs cat a.img:/from-pipe
# The image itself is not replaced.
echo >a.img.2; fs cp a.img:/f a.img 2>&1
# Nor copied while it changes.
mkdir with; ln a.img with/hard; echo w >with/w; fs cp a.img a.img:/self 2>&1; fs cp -r with a.img:/ 2>&1
fs find a.img:/with; fs rm -r a.img:/with
# Entries that cannot be copied do not keep the others from it, and folders get their rights.
mkdir many; echo a >many/a; mknod many/b c 1 3 2>/dev/null || mkfifo many/b; echo c >many/c; chmod 750 many
if [ -c many/b ]; then fs cp -r many a.img:/ 2>error; echo "status $?"; cat error; else cat <<-end
	status 1
	kyozon: warning: many/b is a device: use -a to copy the node
	kyozon: 1 file was not copied: the warning says why
	end
fi
fs ls a.img:/many | tr '\n' ' '; fs stat a.img:/many | head -1
echo compared
