# Words for the scenarios of this folder, sourced by their steps.
insmod /m/kyozon_probe.ko 2>/dev/null
test_cokernel=/usr/lib/kyozon/cokernel-test.bin

# load OPTION...: the test cokernel. Without a deterministic clock an emulator on a busy machine stops for long.
load() {
	kyozon load --cokernel $test_cokernel --budget 10000 "$@"
}

# state FILE: what must be the same before and after.
state() {
	{
		cat /proc/kyozon_probe/state
		cut -d ' ' -f 1 /proc/modules | grep -v kyozon_probe
		ls /dev /sys/kernel/debug
	} >"$1"
}

# field NAME: a number of the status.
field() {
	kyozon status --json | sed -n "s/^ *\"$1\": \"*\([^\",]*\).*/\1/p"
}

# wait_for_ticks: until the first has come, at most 5 s.
wait_for_ticks() {
	for turn in $(seq 50); do
		[ $(field ticks) -gt 0 ] && return
		sleep 0.1
	done
	return 1
}

# seed: one that no other run has; print it, so that a run can be had again.
seed() {
	od -A n -N 2 -t u2 /dev/urandom | tr -d ' '
}

# work SEED: keeps the machine busy in user mode, in the kernel and with forks, until it is killed.
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

# wait_for_line PATTERN: until the event ring has it, at most 30 s.
wait_for_line() {
	for turn in $(seq 150); do
		kyozon events | grep -q "$1" && return
		sleep 0.2
	done
	echo "no line like $1" >&2
	return 1
}
