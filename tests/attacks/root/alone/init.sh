# The cokernel's CPU is reset and started with the attacker's code. In HAL mode Linux has lost that CPU: a boot of its own.
cpus=2
attempt() {
	root init || return 1
	usual=$(ticks_during root hold 1000)
}
works() { answer | grep -q 'our code runs'; }
wall=reported report='wall: INIT to CPU [0-9]+'
