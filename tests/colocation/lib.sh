# Shell functions for the scenarios of this folder; their steps source this file.
insmod /m/kyozon_probe.ko 2>/dev/null
test_cokernel=/usr/lib/kyozon/cokernel-test.bin

# load OPTION...: loads the test cokernel. Its budget is long: without a deterministic clock, an emulator on a busy
# machine may pause.
load() {
	kyozon load --cokernel $test_cokernel --budget 10000 "$@"
}

# state FILE: writes the machine state that must be equal before and after a test.
state() {
	{
		cat /proc/kyozon_probe/state
		cut -d ' ' -f 1 /proc/modules | grep -v kyozon_probe
		ls /dev /sys/kernel/debug
	} >"$1"
}

# field NAME: prints a field of the status.
field() {
	kyozon status --json | sed -n "s/^ *\"$1\": \"*\([^\",]*\).*/\1/p"
}

# wait_for_ticks: waits for the first tick, at most 5 s.
wait_for_ticks() {
	for turn in $(seq 50); do
		[ $(field ticks) -gt 0 ] && return
		sleep 0.1
	done
	return 1
}

# seed: prints a random seed. A test prints its seed, so that the run can be repeated.
seed() {
	od -A n -N 2 -t u2 /dev/urandom | tr -d ' '
}

# work SEED: loads the machine in user mode, in the kernel and with forks, until killed.
work() {
	chance=$1
	while :; do
		chance=$(((chance * 1103515245 + 12345) & 0x7fffffff))
		size=$((chance >> 8 & 63))
		case $((chance >> 16 & 7)) in
		0 | 1) dd if=/dev/zero bs=64k count=$size 2>/dev/null | sha256sum ;;
		2) find /proc /sys/kernel -type f 2>/dev/null | head -n $((size * 8 + 1)) | xargs ls -l ;;
		3 | 4) for i in $(seq $size); do (true); done ;;
		5) dd if=/dev/zero of=/tmp/work bs=4k count=$((size * 8)) 2>/dev/null ;;
		6) awk -v n=$size 'BEGIN { for (i = 0; i < 1000 * n; i++) s += i * 1.5; print s }' ;;
		7) sleep 0.0$size ;;
		esac
	done >/dev/null 2>&1
}

# wait_for_line PATTERN: waits until an event matches, at most 30 s.
wait_for_line() {
	for turn in $(seq 150); do
		kyozon events | grep -q "$1" && return
		sleep 0.2
	done
	echo "no event matches $1 after 30 s" >&2
	return 1
}
