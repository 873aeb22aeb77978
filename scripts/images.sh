#!/bin/sh
# images.sh FOLDER CRATE:BIN[:elf|:task]...
# Builds what runs without an operating system, and writes each as a flat image FOLDER/BIN.bin, or where a loader wants
# that as an ELF file FOLDER/BIN.elf. A task of the microkernel is an ELF file behind a page of header, FOLDER/BIN.bin.
# The feature `image` is for flat images and tasks, the feature BIN for ELF files.
set -eu
folder=$1
shift
mkdir -p "$folder"
cd "$(dirname "$0")/.."

# The page of abi::layer::ImageHeader that a task begins with: only magic, version and kind mean something.
task_header() {
	version=$(sed -n 's/^#define KYOZON_LAYER_VERSION //p' crates/abi/include/kyozon/abi.h)
	task=$(sed -n 's/^#define KYOZON_IMAGE_TASK //p' crates/abi/include/kyozon/abi.h)
	printf "KYOZON\\000\\032\\$(printf %03o "$version")\\000\\000\\000\\$(printf %03o "$task")"
	head -c 4083 /dev/zero
}

for image; do
	crate=${image%%:*} bin=${image#*:} feature=image kind=bin form=flat
	case $bin in
	*:elf) bin=${bin%:elf} feature=$bin kind=elf form=elf ;;
	*:task) bin=${bin%:task} form=task ;;
	esac
	# shellcheck disable=SC2086 # KYOZON_BUILD_STD is a list of words, or empty
	"${CARGO:-cargo}" build --locked --quiet --release --target x86_64-unknown-none ${KYOZON_BUILD_STD:-} \
		-p "$crate" --bin "$bin" --features "$feature"
	built=$CARGO_TARGET_DIR/x86_64-unknown-none/release/$bin
	case $form in
	flat) objcopy -O binary "$built" "$folder/$bin.new" ;;
	elf) objcopy --strip-debug "$built" "$folder/$bin.new" ;;
	task)
		objcopy --strip-all "$built" "$folder/$bin.new-elf"
		{ task_header && cat "$folder/$bin.new-elf"; } >"$folder/$bin.new"
		rm "$folder/$bin.new-elf"
		;;
	esac
	# An image that did not change keeps its time, so that the module is not built anew.
	cmp -s "$folder/$bin.new" "$folder/$bin.$kind" && rm "$folder/$bin.new" || mv "$folder/$bin.new" "$folder/$bin.$kind"
done
