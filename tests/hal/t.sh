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

# work: keeps the machine busy in user mode, in the kernel and with forks, until it is killed.
work() {
	while :; do
		dd if=/dev/zero bs=64k count=40 2>/dev/null | sha256sum
		find /proc /sys/kernel -type f 2>/dev/null | head -n 300 | xargs ls -l
		for i in 1 2 3 4 5 6 7 8; do (true); done
		dd if=/dev/zero of=/tmp/work bs=4k count=200 2>/dev/null
		awk 'BEGIN { for (i = 0; i < 20000; i++) s += i * 1.5; print s }'
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
