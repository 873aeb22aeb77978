# alone N TICKS [HZ]: the microkernel with three test tasks on a machine without Linux, script N, off after so many ticks.
# What it says is told, and how it ended.
alone() {
	initrd=$SCRATCH/initrd
	cat "$KYOZON_PRODUCT/cokernel.bin" >"$initrd"
	for task in 1 2 3; do
		# Each image begins on a page.
		truncate -s %4096 "$initrd"
		cat "$KYOZON_PRODUCT/task-test.bin" >>"$initrd"
	done
	timeout 50 "${KYOZON_QEMU:-qemu-system-x86_64}" -nodefaults -no-user-config -no-reboot -display none -accel tcg \
		-machine q35 -cpu max -m 128 -icount shift=0,sleep=off -serial stdio \
		-global hpet.msi=on -global hpet.timers=4 \
		-kernel "$KYOZON_PRODUCT/alone.elf" -initrd "$initrd" -append "hz=${3:-500} budget=200 parameter=$1 ticks=$2" </dev/null
}
