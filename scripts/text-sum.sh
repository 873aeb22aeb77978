#!/bin/sh
# text-sum.sh FOLDER: compiles the task that sums Linux's text to typed code for the microkernel, FOLDER/text-sum.typed.
# Does nothing without Rust's target wasm32-wasip1. FOLDER/kyozon compiles it.
set -eu
cd "$(dirname "$0")/.."
target=wasm32-wasip1
[ -d "$("${RUSTC:-rustc}" --print sysroot)/lib/rustlib/$target" ] || exit 0
# Nothing of an operating system is linked.
"${CARGO:-cargo}" rustc --locked --quiet --release --target $target -p kyozon-text-sum --lib --crate-type cdylib -- \
	-Clink-self-contained=no -Clink-arg=--no-entry -Clink-arg=-zstack-size=32768 -Cstrip=symbols
wasm=$CARGO_TARGET_DIR/$target/release/kyozon_text_sum.wasm
"$1/kyozon" typed compile --microkernel "$wasm" -o "$1/text-sum.new" >/dev/null
mv "$1/text-sum.new" "$1/text-sum.typed"
