# Words for the scenarios of this folder, sourced by their steps.
test_task=/usr/lib/kyozon/task-test.bin

# script N SECONDS HZ: loads the microkernel with three test tasks and script N for some seconds, with so many ticks each,
# and data of 5000 letters, and says how that went.
script() {
	head -c 5000 /dev/zero | tr '\0' a >/tmp/data
	kyozon load --task $test_task --task $test_task --task $test_task --data /tmp/data --hz $3 --parameter $1 \
		--serial 0x3e8 >/dev/null || exit 1
	sleep $2
	kyozon status | sed -n 's/^state *\([a-z]*\) .*/state \1/p; s/^reason *//p'
	kyozon unload >/dev/null || exit 1
}
