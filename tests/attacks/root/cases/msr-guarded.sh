# Registers that move the clock, the memory types or the microcode of the cokernel's CPU.
attempt() {
	for name in mtrr microcode mmconfig tsc-ratio debugctl; do
		root msr $name || return 1
		answer
	done >/tmp/answers
}
works() { grep -q changes /tmp/answers; }
wall=reported report='wall: write of MSR 0xc0000104 from CPU [0-9]+, rip 0x[0-9a-f]+'
