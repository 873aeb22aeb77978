# unlisted.sh: hides processes from every list of tasks, loads the monitor, and shows that it finds and repairs them by
# what is left. They are hidden before the load: no pass has met them.
. /lib.sh
try() {
	target $1 /tmp/target </dev/null >/dev/null 2>&1 &
	sleep 0.5
	read -r process </tmp/target
	echo "hide-all $process$2" >/proc/kyozon-attacks || exit 1
	ls /proc | grep -qx $process && echo "still listed"
	kyozon load --isolation "$isolation" >/dev/null || exit 1
	outcome="not found"
	wait_for_line "FINDING hidden process: target, pid $process at .*, found $3\$" && outcome=found
	wait_for_line "hidden process: target, pid $process: repaired" && kill -0 $process && target listed 1236 &&
		ls /proc | grep -qx $process && outcome="$outcome, repaired"
	echo "$1$2: $outcome"
	[ "$outcome" = "found, repaired" ] || { kyozon events; kyozon inspect tasks; } >&2
	echo undo >/proc/kyozon-attacks
	rm /tmp/target
	wait
	kyozon unload
}
related="only by its parent, process group, session or threads"
try busy "" "only in a CPU's run queue"
try idle " children" "$related"
try member " groups" "$related"
