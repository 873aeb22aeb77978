#!/bin/sh
# round.sh KIND MEGABYTES MKFS...: copies a tree into a new image and back, and compares; the file system's own checker
# must find nothing. Prints one line. FLAGS are options of kyozon fs.
set -eu
kind=$1 megabytes=$2
shift 2
cd "$SCRATCH"
PATH=$PATH:/usr/sbin:/sbin
image=$kind.img
truncate -s "${megabytes}M" "$image"
"$@" "$image" >mkfs.log 2>&1 || { cat mkfs.log; exit 1; }
fs() { "$KYOZON_PRODUCT/kyozon-linux" fs ${FLAGS:-} "$@"; }

mkdir -p tree/empty tree/deep/er/still
seq 100000 >tree/numbers
printf 'one line\n' >"tree/deep/a name with spaces"
truncate -s 20M tree/sparse
printf end | dd of=tree/sparse bs=1 seek=15000000 conv=notrunc 2>/dev/null
touch -d '2001-02-03 04:05:06 UTC' tree/deep/er/old
case $kind in
vfat | exfat) flags=-r ;;
*)
	flags=-a
	ln -s ../numbers tree/deep/link
	ln tree/numbers tree/deep/second
	chmod 2751 tree/deep/er
	mkfifo tree/fifo
	setfattr -n user.colour -v blue tree/numbers 2>/dev/null || true
	;;
esac

fs cp $flags tree "$image:/"
fs mkdir -p "$image:/a/b"
fs cp tree/numbers "$image:/a/b/again"
fs cp "$image:/a/b/again" back.numbers
cmp tree/numbers back.numbers
[ "$(fs cat "$image:/tree/deep/a name with spaces")" = 'one line' ]
fs rm -r "$image:/a"
[ "$(fs ls "$image:/" | grep -v 'lost+found')" = tree ]
fs cp $flags "$image:/tree" copy
[ ! -p tree/fifo ] || { [ -p copy/fifo ] && rm tree/fifo copy/fifo; }
diff -r --no-dereference tree copy
list() { (cd "$1" && find . -type f -o -type d | LC_ALL=C sort | xargs -d '\n' stat -c "$2"); }
case $kind in
vfat) ;; # Rights are the mount's, and times are of two seconds.
exfat) ;;
*)
	[ "$(list tree '%n %A %u %g %s %Y %h')" = "$(list copy '%n %A %u %g %s %Y %h')" ]
	[ "$(stat -c %b copy/sparse)" -lt 100 ]
	[ "$(readlink copy/deep/link)" = ../numbers ]
	[ "$(stat -c %i copy/numbers)" = "$(stat -c %i copy/deep/second)" ]
	[ "$(fs find "$image:/tree" --type l)" = /tree/deep/link ]
	fs tar "$image:/tree" | tar -t | LC_ALL=C sort >listed
	[ "$(wc -l <listed)" = 11 ]
	;;
esac
case $kind in
ext4) e2fsck -fn "$image" ;;
xfs) xfs_repair -n "$image" ;;
btrfs) btrfs check -q "$image" ;;
vfat) fsck.vfat -n "$image" ;;
exfat) fsck.exfat -n "$image" ;;
esac >check.log 2>&1 || { cat check.log; exit 1; }
echo "$kind: there and back"
