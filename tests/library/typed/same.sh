#!/bin/sh
# same.sh PROGRAMS NAME FLAGS ARGUMENT ...: runs the program NAME of the folder PROGRAMS as typed code whose folder
# `data` is in an image, and as a process with a folder of the host. Both must print the same, end with the same status,
# and leave the same files. FLAGS are words for kyozon typed run. Prints what they print, and the status.
set -eu
PATH=$PATH:/usr/sbin:/sbin
programs=$1 name=$2 flags=$3
shift 3
work=$SCRATCH/work
rm -rf "$work" && mkdir -p "$work/data" && cd "$work"
truncate -s 64M disk.img && mkfs.ext4 -q disk.img
kyozon fs mkdir disk.img:/data
status=0
# shellcheck disable=SC2086 # words
echo "a line of standard input" | kyozon typed run "$programs/$name.typed" $flags --dir disk.img:/data::data \
	--env GREETING=hello --env TMPDIR=data -- "$@" >typed.output 2>&1 || status=$?
echo "status $status" >>typed.output
status=0
echo "a line of standard input" | env -i GREETING=hello TMPDIR=data "$programs/$name" "$@" \
	>native.output 2>&1 || status=$?
echo "status $status" >>native.output
cat typed.output
diff typed.output native.output
mkdir out && kyozon fs cp -a disk.img:/data out
diff -r out/data data
e2fsck -fn disk.img >/dev/null 2>&1 || echo "the image is damaged"
