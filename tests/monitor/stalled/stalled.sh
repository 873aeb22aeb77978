# watch OPTION...: loads the monitor, and waits until it watches.
watch() {
	insmod /m/kyozon-attacks.ko 2>/dev/null
	# With a real-time clock, an emulator on a busy machine stalls for long: much budget, many ticks.
	kyozon load --hz 1000 --budget 10000 --serial 0x3e8 "$@" >/dev/null || exit 1
	for turn in $(seq 300); do
		kyozon events | grep -q 'monitoring Linux' && return
		sleep 0.1
	done
	exit 1
}

# stall SECONDS: keeps interrupts off on the last CPU.
stall() {
	taskset -c $(($(nproc) - 1)) sh -c "echo stall $1 >/proc/kyozon-attacks"
}
