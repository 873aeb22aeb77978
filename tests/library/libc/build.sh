#!/bin/sh
# build.sh SOURCE PROGRAM: compiles a program in C, C++ or Rust for a host.
set -eu
case $1 in
*.cc) KYOZON_SYSROOT=$("$TREE/scripts/libcxx.sh") ;;
*) KYOZON_SYSROOT=$("$TREE/scripts/libc.sh") ;;
esac
export KYOZON_SYSROOT
case $1 in
*.c) "$KYOZON_PRODUCT/kyozon" cc -std=gnu11 -O2 -Wall -Wextra -Werror -I "$TREE/tests/library/libc" "$1" -o "$2" ;;
*.cc) "$KYOZON_PRODUCT/kyozon" c++ -std=c++17 -O1 -Wall -Wextra -Werror "$1" -o "$2" ;;
*.rs)
	# shellcheck disable=SC2046 # a word list
	"${RUSTC:-rustc}" -O $(kyozon-cc --rust-flags) --target x86_64-unknown-linux-musl "$1" -o "$2"
	;;
esac
