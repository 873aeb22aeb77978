# Words for the steps of this scenario, sourced by each.
file=/tmp/target

# start: the process that is to be hidden.
start() {
	target run $file </dev/null >/dev/null 2>&1 &
	sleep 0.5
	again
}

# again: the numbers of the process that an earlier step started.
again() {
	read -r process thread _ <$file
}

attack() {
	echo "$1" >/proc/kyozon-attacks && cat /proc/kyozon-attacks
}

# show NUMBER USER: what Linux says of a task by its number, by a walk over all threads, and in a listing; whether it runs.
show() {
	kill -0 "$1" 2>/dev/null && printf 'number ' || printf 'no '
	target listed "$2" && printf 'listed ' || printf 'hidden '
	{ ls /proc; ls "/proc/$process/task" 2>/dev/null; } | grep -qx "$1" && printf 'shown ' || printf 'absent '
	before=$(wc -c <$file); sleep 0.5; after=$(wc -c <$file)
	[ "$after" -gt "$before" ] && echo runs || echo stands
}
