. /lib.sh

# refused PATTERN OPTION...: load must fail with one line that matches, and leave the machine as it was.
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
		echo "load $*: said $(cat /tmp/err)" >&2
		exit 1
	}
	cmp -s /tmp/before /tmp/after || {
		diff /tmp/before /tmp/after >&2
		exit 1
	}
}
