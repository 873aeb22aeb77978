#!/bin/sh
# run.sh SOURCE [ARGUMENT]...: compiles a program in C or Rust for a host, and runs it on the test host.
set -eu
KYOZON_SYSROOT=$("$TREE/scripts/libc.sh")
export KYOZON_SYSROOT
source=$1 program=$SCRATCH/${1%.*}
shift
case $source in
*.c) kyozon-cc -std=gnu11 -O2 -Wall -Wextra -Werror -I "$TREE/tests/library/libc" "$source" -o "$program" ;;
*.rs)
	# shellcheck disable=SC2046 # a word list
	"${RUSTC:-rustc}" -O $(kyozon-cc --rust-flags) --target x86_64-unknown-linux-musl "$source" -o "$program"
	;;
esac
exec kyozon-libc-test-host "$program" "$@"
