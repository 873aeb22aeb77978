#!/bin/sh
# run.sh SOURCE [ARGUMENT]...: compiles a program in C, C++ or Rust for a host, and runs it on the test host.
set -eu
program=$SCRATCH/$(basename "${1%.*}")
"$TREE/tests/library/libc/build.sh" "$1" "$program"
shift
exec kyozon-libc-test-host "$program" "$@"
