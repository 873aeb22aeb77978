#!/bin/sh
# linux.sh ARGUMENTS: kyozon-linux-exec with the kernel image of this tree.
set -eu
exec "${CARGO:-cargo}" run --locked --quiet --manifest-path "$TREE/Cargo.toml" -p kyozon-linux-exec -- \
	--kernel "$KYOZON_PRODUCT/linux.elf" "$@"
