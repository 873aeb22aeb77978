#!/bin/sh
# round.sh MKFS OPTIONS...: copies a tree into qcow2 images, made with each of the OPTIONS from a raw one, and back.
# qemu-img and the file system's own checker must find nothing.
set -eu
mkfs=$1
shift
cd "$SCRATCH"
PATH=$PATH:/usr/sbin:/sbin
fs() { "$KYOZON_PRODUCT/kyozon" fs ${FLAGS:-} "$@"; }
rm -rf raw tree
truncate -s 64M raw
"mkfs.$mkfs" raw >mkfs.log 2>&1 || { cat mkfs.log; exit 1; }
mkdir -p tree/deep/er
seq 100000 >tree/numbers
head -c 5000000 /dev/urandom >tree/deep/er/random
truncate -s 8M tree/deep/hole
for options; do
	# shellcheck disable=SC2086
	qemu-img convert -f raw -O qcow2 $options raw image.qcow2
	fs cp -r tree image.qcow2:/
	fs cp -r image.qcow2:/tree back
	diff -r tree back
	fs rm -r image.qcow2:/tree/deep
	qemu-img check -q -f qcow2 image.qcow2 || { echo "$mkfs $options"; qemu-img check image.qcow2; exit 1; }
	qemu-img convert -f qcow2 -O raw image.qcow2 again
	case $mkfs in
	ext4) e2fsck -fn again ;;
	vfat) fsck.vfat -n again ;;
	esac >check.log 2>&1 || { echo "$mkfs $options"; cat check.log; exit 1; }
	rm -rf back
done
echo "$mkfs: $# kinds"
