# check KIND [OPTION...]: loads the program and waits for the verdict. Prints it, the state, and a stop that was too
# long.
check() {
	long "$1" >/tmp/program || exit 1
	shift
	kyozon load --data /tmp/program "$@" >/dev/null || exit 1
	for _ in $(seq 200); do
		kyozon events | grep -q . && break
		sleep 0.1
	done
	kyozon events | sed 's/^[^ ]* *[^ ]* *//'
	kyozon status | sed -n 's/^state *\([a-z]*\) .*/state \1/p'
	longest=$(kyozon status | sed -n 's/.*longest \([0-9]*\)\..*/\1/p')
	[ "$longest" -lt 230 ] || echo "longest stop $longest us"
	kyozon unload >/dev/null || exit 1
}
