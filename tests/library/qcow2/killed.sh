#!/bin/sh
# killed.sh: kills kyozon fs at ten moments while it writes a qcow2 image with small clusters, hence many tables.
# qemu-img finds no error afterwards; clusters that belong to nothing are allowed.
set -eu
cd "$SCRATCH"
PATH=$PATH:/usr/sbin:/sbin
truncate -s 256M raw
mkfs.ext4 -q raw
head -c 100M /dev/urandom >data
killed=0
for moment in 1 2 3 4 5 6 7 8 9 10; do
	qemu-img convert -f raw -O qcow2 -o cluster_size=1024 raw image.qcow2
	before=$(stat -c %s image.qcow2)
	"$KYOZON_PRODUCT/kyozon" fs cp data image.qcow2:/ &
	pid=$!
	# The file grows when data are written: it is killed at ever larger sizes.
	while [ "$(stat -c %s image.qcow2)" -lt $((before + moment * 4000000)) ] && kill -0 $pid 2>/dev/null; do :; done
	kill -KILL $pid 2>/dev/null || true
	wait $pid 2>/dev/null && status=0 || status=$?
	[ $status != 137 ] || killed=$((killed + 1))
	# Linux's process ends with the command, and has the image until then.
	flock -w 60 image.qcow2 true
	result=0
	qemu-img check -f qcow2 image.qcow2 >check.log 2>&1 || result=$?
	case $result in
	0 | 3) ;;
	*) cat check.log; exit 1 ;;
	esac
done 2>/dev/null
[ $killed -gt 0 ] && echo 'killed: no errors'
