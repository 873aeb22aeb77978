#!/bin/sh
# run.sh BACKEND SOURCE [OPTION]... [-- ARGUMENT...]: compiles a program as for any host, and runs it as a unikernel.
set -eu
backend=$1
program=$SCRATCH/$(basename "${2%.*}")
"$TREE/tests/library/libc/build.sh" "$2" "$program"
shift 2
exec kyozon run --backend "$backend" --time-limit 60 "$program" "$@"
