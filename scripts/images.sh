#!/bin/sh
# images.sh FOLDER CRATE:BIN[:elf|:task|:own|:unikernel|:c]...
# Builds what runs without an operating system, and writes each as a flat image FOLDER/BIN.bin, or where a loader wants
# that as an ELF file FOLDER/BIN.elf. A task of the microkernel is an ELF file behind a page of header, FOLDER/BIN.bin.
# A unikernel is an ELF file, FOLDER/BIN.elf, with symbols for its crash reports. It is compiled for the host's target,
# without anything of the host's in it: so it computes with vector registers, as a program beside it would. With :c it is
# CRATE's examples/BIN.c, linked with CRATE.
# The feature `image` is for flat images, tasks and unikernels, the feature BIN for ELF files and flat images with :own.
set -eu
folder=$1
shift
mkdir -p "$folder"
cd "$(dirname "$0")/.."

# task_header BYTES: the page with the abi::layer::ImageHeader that precedes a task's ELF file of BYTES bytes.
task_header() {
	printf '#include <kyozon/abi.h>\nconst struct { struct kyozon_image_header header; char rest[%s]; } page = { {
		.magic = KYOZON_IMAGE_MAGIC, .version = KYOZON_LAYER_VERSION, .kind = KYOZON_IMAGE_TASK, .data_bytes = %s,
	}, "" };\n' '4096 - sizeof(struct kyozon_image_header)' "$1" |
		"${CC:-cc}" -I crates/base/abi/include -x c -c - -o "$folder/header.o"
	objcopy -O binary -j .rodata "$folder/header.o" "$folder/header.new"
	cat "$folder/header.new"
	rm "$folder/header.o" "$folder/header.new"
}

for image; do
	crate=${image%%:*} bin=${image#*:} feature=image kind=bin form=flat target=x86_64-unknown-none
	case $bin in
	*:elf) bin=${bin%:elf} feature=$bin kind=elf form=elf ;;
	*:own) bin=${bin%:own} feature=$bin ;;
	*:task) bin=${bin%:task} form=task ;;
	# A backtrace follows frame pointers.
	*:c) bin=${bin%:c} kind=elf form=c target=x86_64-unknown-linux-gnu ;;
	*:unikernel) bin=${bin%:unikernel} kind=elf form=elf target=x86_64-unknown-linux-gnu ;;
	esac
	case $target in
	*-none) std=${KYOZON_BUILD_STD:-} flags= ;;
	*) std= flags=-Cforce-frame-pointers=yes ;;
	esac
	case $form in
	c) what=--lib ;;
	*) what="--bin $bin" ;;
	esac
	# shellcheck disable=SC2086 # std and what are lists of words, or empty
	RUSTFLAGS=$flags "${CARGO:-cargo}" build --locked --quiet --release --target "$target" $std \
		-p "$crate" $what --no-default-features --features "$feature"
	built=$CARGO_TARGET_DIR/$target/release/$bin
	case $form in
	flat) objcopy -O binary "$built" "$folder/$bin.new" ;;
	c)
		folder_of=crates/unikernel/${crate#kyozon-unikernel-} library=$(echo "$crate" | tr - _)
		# Code is for any address, as images lie above 2 GiB, and keeps frame pointers for backtraces.
		"${CC:-cc}" -std=c11 -O2 -Wall -Wextra -Werror -ffreestanding -fpie -fno-stack-protector -fno-omit-frame-pointer \
			-I "$folder_of/include" -nostdlib -nostartfiles -static -no-pie -Wl,--build-id=none -Wl,--gc-sections \
			-T crates/unikernel/guest/unikernel.ld "$folder_of/examples/$bin.c" \
			"$CARGO_TARGET_DIR/$target/release/lib$library.a" -o "$folder/$bin.new-elf"
		objcopy --strip-debug "$folder/$bin.new-elf" "$folder/$bin.new"
		rm "$folder/$bin.new-elf"
		;;
	elf) objcopy --strip-debug "$built" "$folder/$bin.new" ;;
	task)
		objcopy --strip-all "$built" "$folder/$bin.new-elf"
		{ task_header "$(wc -c <"$folder/$bin.new-elf")" && cat "$folder/$bin.new-elf"; } >"$folder/$bin.new"
		rm "$folder/$bin.new-elf"
		;;
	esac
	# An image that did not change keeps its time, so that the module is not built anew.
	cmp -s "$folder/$bin.new" "$folder/$bin.$kind" && rm "$folder/$bin.new" || mv "$folder/$bin.new" "$folder/$bin.$kind"
done
