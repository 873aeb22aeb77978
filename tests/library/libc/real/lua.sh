#!/bin/sh
# lua.sh cc|c++ PROGRAM: builds Lua from the source in a crate, with kyozon's compiler, and PROGRAM-native with the
# machine's.
set -eu
compiler=$1 program=$2
here=$TREE/tests/library/libc
manifest=$here/real/Cargo.toml
"${CARGO:-cargo}" fetch --quiet --locked --manifest-path "$manifest" 2>/dev/null ||
	"${CARGO:-cargo}" fetch --quiet --locked --offline --manifest-path "$manifest"
source=$("${CARGO:-cargo}" metadata --offline --locked --format-version 1 --manifest-path "$manifest" |
	sed -E 's/.*"manifest_path":"([^"]*lua-src[^"]*)\/Cargo.toml".*/\1/')/lua-5.4.8
KYOZON_SYSROOT=$("$here/../../../scripts/libcxx.sh")
export KYOZON_SYSROOT
case $compiler in
cc) language=c native=cc ;;
c++) language=c++ native=c++ ;;
esac
set -- -O0 -w -DLUA_USE_POSIX -I "$source" -x $language "$here/real/lua.c" "$source"/*.c -x none -lm
"$KYOZON_PRODUCT/kyozon" "$compiler" "$@" -o "$program"
$native "$@" -o "$program-native"
