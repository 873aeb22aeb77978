#!/bin/bash
# ends.sh: how a mount ends, and what it refuses. Prints one line.
. "$(dirname "$0")/lib.sh"
fs() { "$KYOZON_PRODUCT/kyozon-linux" fs mount "$@"; }
truncate -s 64M ext4.img && mkfs.ext4 -q ext4.img

# wait_for COMMAND...: until it succeeds.
wait_for() {
	for _ in $(seq 100); do
		"$@" 2>/dev/null && return
		sleep 0.1
	done
	fail "not yet: $*"
}
mounted() { mountpoint -q mnt; }
unmounted() { ! mountpoint -q mnt; }

# A full disk is an error of the program that fills it, and of the first byte that does not fit.
start ext4.img
! dd if=/dev/zero of=mnt/big bs=1M 2>dd.log || fail "no end of the disk"
grep -q 'No space left on device' dd.log || fail "$(cat dd.log)"
[ "$(stat -c %s mnt/big)" -gt 50000000 ] && rm mnt/big && echo fits >mnt/small
stop ext4.img
check ext4 ext4.img

# An image that may only be read.
chmod 444 ext4.img
before=$(sha256sum ext4.img)
start ext4.img -r
[ "$(cat mnt/small)" = fits ] && ! touch mnt/small 2>touch.log && grep -q 'Read-only file system' touch.log
stop ext4.img
[ "$before" = "$(sha256sum ext4.img)" ] || fail "reading changed the image"
if [ "$(id -u)" != 0 ]; then
	! fs ext4.img mnt 2>denied.log || fail "mounted for writing"
	grep -qx 'kyozon: ext4.img: Permission denied: use -r to mount it for reading' denied.log || fail "$(cat denied.log)"
fi
chmod 644 ext4.img

# Each signal writes everything and unmounts, also while a file is open.
for signal in TERM INT HUP; do
	# A shell's background ignores SIGINT.
	env --default-signal=INT "$KYOZON_PRODUCT/kyozon-linux" fs mount -f ext4.img mnt 2>signal.log &
	mount=$!
	wait_for mounted
	echo "$signal" >"mnt/$signal"
	exec 3<>mnt/open
	kill -"$signal" $mount && wait $mount || fail "status $? after SIG$signal"
	unmounted && [ ! -s signal.log ] || fail "SIG$signal: $(cat signal.log)"
	exec 3>&-
	check ext4 ext4.img
done
start ext4.img
[ "$(cat mnt/TERM mnt/INT mnt/HUP | tr '\n' ' ')" = "TERM INT HUP " ] || fail "a signal lost what was written"
# One image, one mount.
mkdir -p second && ! fs ext4.img second 2>busy.log && grep -q 'in use as another disk' busy.log
stop ext4.img

# A kernel that dies: one message, errors for programs, and a mount that ends as usual.
"$KYOZON_PRODUCT/kyozon-linux" fs mount -f ext4.img mnt 2>died.log &
mount=$!
wait_for mounted
kill -9 $(pgrep -P $mount)
wait_for test -s died.log
! ls mnt 2>ls.log && grep -q 'Input/output error' ls.log || fail "$(cat ls.log)"
! echo x 2>/dev/null >mnt/x
fusermount3 -u mnt
! wait $mount || fail "success after a death"
line="^kyozon: .*/mnt: Linux's process was killed by signal 9 (SIGKILL).*: unmount it with fusermount3 -u .*/mnt$"
[ "$(wc -l <died.log)" = 1 ] && grep -q "$line" died.log || fail "$(cat died.log)"
e2fsck -fy ext4.img >check.log 2>&1 || [ $? = 1 ] || fail "$(cat check.log)"

# What cannot be mounted: one line, status 1, and nothing is left.
refused() {
	text=$1
	shift
	! fs "$@" 2>refused.log || fail "mounted: $*"
	[ "$(cat refused.log)" = "kyozon: $text" ] || fail "$* said $(cat refused.log)"
	unmounted && flock -n ext4.img true || fail "something is left after $*"
}
refused 'none.img: No such file or directory' none.img mnt
refused 'none: No such file or directory' ext4.img none
refused "$PWD/ext4.img is not a folder: make one, and mount there" ext4.img ext4.img
refused 'cannot mount ext4.img: it contains no xfs' --kind xfs ext4.img mnt
refused 'ext4.img has no partition 2' ext4.img@2 mnt
if [ "$(id -u)" != 0 ]; then
	refused 'cannot mount on /usr: fusermount3: user has no write access to mountpoint /usr' ext4.img /usr
	check ext4 ext4.img
fi
# Its memory goes back: a mount of another kind, in this process's own kernel.
FLAGS=--in-process
start ext4.img
[ "$(cat mnt/small)" = fits ] && echo more >mnt/more
stop ext4.img
check ext4 ext4.img
# Its last act, the end of the process, comes after the image is free.
nobody() { ! pgrep -P 1 -f "mount.*$PWD" >/dev/null; }
wait_for nobody
echo "ends as $(id -u)"
