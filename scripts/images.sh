#!/bin/sh
# images.sh FOLDER CRATE:BIN[:elf|:task|:own|:unikernel|:c]...
# Builds the binaries that run without an operating system, each in the form that its loader needs:
#   (none), :own   FOLDER/BIN.bin, a flat image
#   :elf           FOLDER/BIN.elf, an ELF file
#   :task          FOLDER/BIN.bin, a task of the microkernel: a header page, then an ELF file
#   :unikernel     FOLDER/BIN.elf, a unikernel: an ELF file with symbols for crash reports. It is compiled for the
#                  host's target, so that it uses vector registers like a host program, but links nothing of the host
#   :c             FOLDER/BIN.elf, a unikernel from CRATE's examples/BIN.c, linked with CRATE
# Flat images, tasks and unikernels are built with the feature `image`; :elf and :own with the feature BIN.
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
	# Backtraces follow frame pointers.
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
	# shellcheck disable=SC2086 # std and what are word lists or empty
	RUSTFLAGS=$flags "${CARGO:-cargo}" build --locked --quiet --release --target "$target" $std \
		-p "$crate" $what --no-default-features --features "$feature"
	built=$CARGO_TARGET_DIR/$target/release/$bin
	case $form in
	flat) objcopy -O binary "$built" "$folder/$bin.new" ;;
	c)
		folder_of=crates/unikernel/${crate#kyozon-unikernel-} library=$(echo "$crate" | tr - _)
		# Position-independent, as images lie above 2 GiB; with frame pointers for backtraces.
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
	# An unchanged image keeps its time stamp, so that the module is not rebuilt.
	cmp -s "$folder/$bin.new" "$folder/$bin.$kind" && rm "$folder/$bin.new" || mv "$folder/$bin.new" "$folder/$bin.$kind"
done
