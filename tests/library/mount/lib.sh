# lib.sh: what the scripts here share. They run in a mount namespace of their own: no mount outlives them.
set -eEu
trap 'echo "$0: line $LINENO failed" >&2' ERR
PATH=$PATH:/usr/sbin:/sbin
export KYOZON_LINUX="$KYOZON_PRODUCT/linux.elf"

fail() { echo "$*" >&2; exit 1; }

# start IMAGE OPTION...: mounts on ./mnt.
start() {
	image=$1
	shift
	mkdir -p mnt
	"$KYOZON_PRODUCT/kyozon-linux" fs mount ${FLAGS:-} "$@" "$image" mnt
	mountpoint -q mnt || fail "nothing is mounted"
}

# written IMAGE: waits until its mount has ended, and everything is written.
written() {
	for _ in $(seq 300); do
		flock -n "$1" true && return
		sleep 0.1
	done
	fail "the mount of $1 does not end"
}

# stop IMAGE: unmounts.
stop() {
	fusermount3 -u mnt
	written "$1"
}

# check KIND IMAGE: the file system's own checker must find nothing.
check() {
	case $1 in
	ext4) e2fsck -fn "$2" ;;
	xfs) xfs_repair -n "$2" ;;
	btrfs) btrfs check -q "$2" ;;
	vfat) fsck.vfat -n "$2" ;;
	exfat) fsck.exfat -n "$2" ;;
	esac >check.log 2>&1 || fail "$1 is damaged: $(tail -n 5 check.log)"
}
