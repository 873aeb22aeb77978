# alone N TICKS [HZ]: runs the microkernel with three test tasks and script N on a machine without Linux, and switches
# the machine off after TICKS ticks. Prints the serial line.
alone() {
	initrd=$SCRATCH/initrd
	cat "$KYOZON_PRODUCT/cokernel.bin" >"$initrd"
	for task in 1 2 3; do
		# Each image starts on a page.
		truncate -s %4096 "$initrd"
		cat "$KYOZON_PRODUCT/task-test.bin" >>"$initrd"
	done
	timeout 50 "${KYOZON_QEMU:-qemu-system-x86_64}" -nodefaults -no-user-config -no-reboot -display none -accel tcg \
		-machine q35 -cpu max -m 128 -icount shift=0,sleep=off -serial stdio \
		-global hpet.msi=on -global hpet.timers=4 \
		-kernel "$KYOZON_PRODUCT/alone.elf" -initrd "$initrd" \
		-append "hz=${3:-500} budget=200 parameter=$1 ticks=$2" </dev/null
}
