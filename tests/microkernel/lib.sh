# Shell functions for the scenarios of this folder; their steps source this file.
test_task=/usr/lib/kyozon/task-test.bin

# script N SECONDS HZ: runs the microkernel with three test tasks, script N and 5000 bytes of data for SECONDS at HZ
# ticks per second. Prints the state and, if it was stopped, the reason.
script() {
	head -c 5000 /dev/zero | tr '\0' a >/tmp/data
	kyozon load --task $test_task --task $test_task --task $test_task --data /tmp/data --hz $3 --parameter $1 \
		--serial 0x3e8 >/dev/null || exit 1
	sleep $2
	kyozon status | sed -n 's/^state *\([a-z]*\) .*/state \1/p; s/^reason *//p'
	kyozon unload >/dev/null || exit 1
}
