#!/bin/sh
# native.sh SOURCE PROGRAM: compiles with this machine's compilers: musl as Debian has it, g++, rustc.
set -eu
case $1 in
*.c) musl-gcc -std=gnu11 -O2 -I "$TREE/tests/library/libc" "$1" -o "$2" ;;
*.cc) g++ -std=c++17 -O1 -pthread "$1" -o "$2" ;;
*.rs) "${RUSTC:-rustc}" -O "$1" -o "$2" ;;
esac
