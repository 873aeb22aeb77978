# sum OPTION FILE: runs the task for Linux's first 64 pages of text, prints what it measured, and keeps its sums.
sum() {
	start=$((0x$(sed -n 's/^ *\([0-9a-f]*\)-.*Kernel code$/\1/p' /proc/iomem)))
	kyozon load "$1" "$2" --parameter $((start + 4 * 64)) >/dev/null || exit 1
	sleep 0.7
	kyozon events | sed -n 's/.* sum: \(pages [0-9]*\) sum [0-9a-f]* \(pass .*\)/\1 \2/p'
	kyozon events | sed -n 's/.* sum: pages 64 sum \([0-9a-f]*\) .*/\1/p' >>/tmp/sums
	kyozon unload >/dev/null || exit 1
}

# run NAME [OPTION...]: runs the program for half a second. Prints the line of its refusal or fault; of one that goes on
# the state. Then $cut is how often it was cut off.
run() {
	name=$1
	shift
	kyozon load --data /m/typed/programs/$name.typed "$@" >/dev/null || exit 1
	sleep 0.5
	if kyozon events | grep -q FAULT; then
		kyozon events | sed -n 's/.* FAULT *\(microkernel: .*\|task 0 stopped: .*\)/\1/p'
	else
		kyozon status | sed -n 's/^state *\([a-z]*\) .*/state \1/p'
	fi
	longest=$(kyozon status | sed -n 's/.*longest \([0-9]*\)\..*/\1/p')
	[ "$longest" -lt 230 ] || echo "longest stop $longest us"
	cut=$(kyozon status | sed -n 's/.*cut off \([0-9]*\) times.*/\1/p')
	kyozon unload >/dev/null || exit 1
}
