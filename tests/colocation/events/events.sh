. /lib.sh

mkdir -p /etc
printf 'root::0:0::/:/bin/sh\nmember::1000:4::/:/bin/sh\nother::1001:1001::/:/bin/sh\n' >/etc/passwd

# as NAME COMMAND...: without root's rights; a member of group 4, or some other.
as() {
	name=$1
	shift
	su $name -c "$*"
}

# follow NAME OPTION...: in the background, to /tmp/NAME; its exit status to /tmp/NAME.status.
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

# busy: what a follower takes of the CPU, from /proc/PID/stat: at most a tenth.
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

# ends NAME: says how, at most 3 s later.
ends() {
	for turn in $(seq 30); do
		[ -s /tmp/$1.status ] && break
		sleep 0.1
	done
	echo "$1 ends $(cat /tmp/$1.status)"
}
