. /lib.sh

mkdir -p /etc
printf 'root::0:0::/:/bin/sh\nmember::1000:4::/:/bin/sh\nother::1001:1001::/:/bin/sh\n' >/etc/passwd

# as NAME COMMAND...: runs a command as user NAME: member (of group 4) or other.
as() {
	name=$1
	shift
	su $name -c "$*"
}

# follow NAME OPTION...: follows events in the background into /tmp/NAME; writes the exit status to /tmp/NAME.status.
follow() {
	name=$1
	shift
	(
		kyozon events --follow "$@" >/tmp/$name &
		echo $! >/tmp/$name.pid
		wait $!
		echo $? >/tmp/$name.status
	) &
}

# busy: checks that a follower takes at most a tenth of the CPU, by /proc/PID/stat.
busy() {
	pid=$(cat /tmp/text.pid)
	before=$(ticks $pid)
	sleep 2
	after=$(ticks $pid)
	[ $((after - before)) -le 20 ] && echo "test: idle" || echo "test: busy: $((after - before)) of 200"
}

ticks() {
	awk '{ print $14 + $15 }' /proc/$1/stat
}

# ends NAME: waits up to 3 s for the end of follower NAME, and prints its exit status.
ends() {
	for turn in $(seq 30); do
		[ -s /tmp/$1.status ] && break
		sleep 0.1
	done
	echo "$1 ends $(cat /tmp/$1.status)"
}
