#!/bin/sh
# own-target.sh: makes $CARGO_TARGET_DIR this tree's. Cargo names the crates of every clone alike, compares only times,
# and keeps linker scripts by absolute path: after another clone has built into the folder, the crates of the workspace
# are compiled again. Those that were downloaded are kept.
set -eu
tree=$(cd "$(dirname "$0")/.." && pwd)
mark=$CARGO_TARGET_DIR/tree
[ "$(cat "$mark" 2>/dev/null)" = "$tree" ] && exit
mkdir -p "$CARGO_TARGET_DIR"
rm -f "$mark"
find "$CARGO_TARGET_DIR" -path '*/.fingerprint/*' -prune -name 'kyozon-*' -exec rm -rf {} +
echo "$tree" >"$mark"
