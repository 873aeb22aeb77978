# Words for the scenarios of this folder, sourced by their steps.
test_task=/usr/lib/kyozon/task-test.bin

# script N SECONDS [OPTION...]: loads the microkernel with three test tasks and script N for some seconds, and says how
# that went.
script() {
	number=$1 seconds=$2
	shift 2
	kyozon load --task $test_task --task $test_task --task $test_task --hz 500 --parameter $number --serial 0x3e8 "$@" \
		>/dev/null || exit 1
	sleep $seconds
	kyozon status | sed -n 's/^state *\([a-z]*\) .*/state \1/p; s/^reason *//p'
	kyozon unload >/dev/null || exit 1
}
