# misbehave N [OPTION...]: runs script N of the test cokernel for half a second, and prints state and reason.
. /lib.sh
misbehave() {
	script=$1
	shift
	kyozon load --cokernel $test_cokernel --hz 500 --parameter $script --serial 0x3e8 "$@" >/dev/null || exit 1
	sleep 0.6
	echo "state $(field state) longest $(($(field longest_ns) / 1000)) overruns $(field overruns)"
	kyozon status | sed -n 's/^reason *//p'
	kyozon unload >/dev/null || exit 1
}
