#!/bin/sh
# same.sh FOLDER NAME ARGUMENT ...: runs the program NAME of FOLDER as typed code and as a process, each with a folder
# `data` of its own below $SCRATCH. Both must print the same, end with the same status, and leave the same files.
# Prints what they print, and the status.
set -u
folder=$1 name=$2
shift 2
for way in typed native; do
	mkdir -p "$SCRATCH/$way/data"
	cd "$SCRATCH/$way" || exit
	if [ $way = typed ]; then
		set -- kyozon typed run "$folder/$name.typed" --dir data --env GREETING=hello --env TMPDIR=data -- "$@"
	else
		while [ "$1" != -- ]; do shift; done
		shift
		set -- env -i GREETING=hello TMPDIR=data "$folder/$name" "$@"
	fi
	echo "a line of standard input" | "$@" >"$SCRATCH/$way/output" 2>&1
	echo "status $?" >>"$SCRATCH/$way/output"
done
cat "$SCRATCH/typed/output"
diff -r "$SCRATCH/typed" "$SCRATCH/native"
