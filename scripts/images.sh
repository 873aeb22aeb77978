#!/bin/sh
# images.sh FOLDER CRATE:BIN[:elf]...
# Builds what runs without an operating system, and writes each as a flat image FOLDER/BIN.bin, or where a loader wants
# that as an ELF file FOLDER/BIN.elf. The feature `image` is for flat images, the feature BIN for ELF files.
set -eu
folder=$1
shift
mkdir -p "$folder"
cd "$(dirname "$0")/.."
for image; do
	crate=${image%%:*} bin=${image#*:} feature=image kind=bin
	case $bin in *:elf) bin=${bin%:elf} feature=$bin kind=elf ;; esac
	# shellcheck disable=SC2086 # KYOZON_BUILD_STD is a list of words, or empty
	"${CARGO:-cargo}" build --locked --quiet --release --target x86_64-unknown-none ${KYOZON_BUILD_STD:-} \
		-p "$crate" --bin "$bin" --features "$feature"
	built=$CARGO_TARGET_DIR/x86_64-unknown-none/release/$bin
	case $kind in
	bin) objcopy -O binary "$built" "$folder/$bin.new" ;;
	elf) objcopy --strip-debug "$built" "$folder/$bin.new" ;;
	esac
	# An image that did not change keeps its time, so that the module is not built anew.
	cmp -s "$folder/$bin.new" "$folder/$bin.$kind" && rm "$folder/$bin.new" || mv "$folder/$bin.new" "$folder/$bin.$kind"
done
