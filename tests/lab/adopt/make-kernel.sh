# sh make-kernel.sh FOLDER: makes files with the names of an unpacked kernel's, and an image with its banner.
set -e
release=6.8.0-31-generic
headers=$1/usr/src/linux-headers-$release
modules=$1/lib/modules/$release
rm -rf "$1"
mkdir -p "$1/boot" "$modules/kernel" "$headers/include/config" "$headers/include/generated" \
	"$headers/scripts/basic" "$headers/scripts/mod" "$headers/tools/objtool"
touch "$modules/modules.builtin" "$modules/modules.order" "$headers/include/config/auto.conf" \
	"$headers/include/generated/utsrelease.h" "$headers/Module.symvers"
for tool in scripts/basic/fixdep scripts/mod/modpost tools/objtool/objtool; do
	printf '#!/bin/sh\nexit 1\n' >"$headers/$tool"
	chmod +x "$headers/$tool"
done
printf 'modules:\n\ttouch $(M)/hello.ko\n' >"$headers/Makefile"
# The setup header: its magic number at 0x202, and at 0x20e where the banner is, counted from 0x200.
image=$1/boot/vmlinuz-$release
head -c 514 /dev/zero >"$image"
printf 'HdrS' >>"$image"
head -c 8 /dev/zero >>"$image"
printf '\020\000%s (builder@host) #31-Ubuntu SMP\000' "$release" >>"$image"
