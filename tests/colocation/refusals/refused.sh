. /lib.sh

# refused PATTERN OPTION...: asserts that load fails with one line that matches and leaves the machine as it was.
refused() {
	pattern=$1
	shift
	state /tmp/before
	if load "$@" >/tmp/out 2>/tmp/err; then
		echo "not refused: $*" >&2
		exit 1
	fi
	state /tmp/after
	[ "$(wc -l </tmp/err)" = 1 ] && grep -qE "^kyozon: .*($pattern)" /tmp/err || {
		echo "load $*: unexpected error: $(cat /tmp/err)" >&2
		exit 1
	}
	cmp -s /tmp/before /tmp/after || {
		diff /tmp/before /tmp/after >&2
		exit 1
	}
}
