# Functions for the steps of this scenario.
file=/tmp/target

# start: starts the process to be hidden.
start() {
	target run $file </dev/null >/dev/null 2>&1 &
	sleep 0.5
	again
}

# again: sets $process and $thread to the PIDs of the process that an earlier step started.
again() {
	read -r process thread _ <$file
}

attack() {
	echo "$1" >/proc/kyozon-attacks && cat /proc/kyozon-attacks
}

# show PID USER: whether a lookup by PID, a walk over all threads and a listing in /proc find a task, and whether it
# runs.
show() {
	kill -0 "$1" 2>/dev/null && printf 'pid ' || printf 'no-pid '
	target listed "$2" && printf 'listed ' || printf 'hidden '
	{ ls /proc; ls "/proc/$process/task" 2>/dev/null; } | grep -qx "$1" && printf 'shown ' || printf 'absent '
	before=$(wc -c <$file); sleep 0.5; after=$(wc -c <$file)
	[ "$after" -gt "$before" ] && echo runs || echo stopped
}
