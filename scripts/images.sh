#!/bin/sh
# images.sh FOLDER CRATE:BIN...
# Builds what runs beside Linux for the bare machine, and writes each as a flat image FOLDER/BIN.bin.
set -eu
folder=$1
shift
mkdir -p "$folder"
cd "$(dirname "$0")/.."
for image; do
	crate=${image%:*} bin=${image#*:}
	# shellcheck disable=SC2086 # KYOZON_BUILD_STD is a list of words, or empty
	"${CARGO:-cargo}" build --locked --quiet --release --target x86_64-unknown-none ${KYOZON_BUILD_STD:-} \
		-p "$crate" --bin "$bin" --features image
	objcopy -O binary "$CARGO_TARGET_DIR/x86_64-unknown-none/release/$bin" "$folder/$bin.new"
	# An image that did not change keeps its time, so that the module is not built anew.
	cmp -s "$folder/$bin.new" "$folder/$bin.bin" && rm "$folder/$bin.new" || mv "$folder/$bin.new" "$folder/$bin.bin"
done
