# privileges.sh, with $isolation: loads the monitor with its defaults, lets processes gain privileges from Linux, runs
# the attacks of /cases, and prints their outcome.
#
# A case defines attack(), on the process $victim, and $found, how the text of its finding begins.
insmod /m/kyozon-attacks.ko 2>/dev/null
cp /m/victim /tmp/set-user-id
chmod 4755 /tmp/set-user-id
kyozon load --isolation "$isolation" >/dev/null || exit 1

# wait_for PATTERN TENTHS: waits until a line of the events matches.
wait_for() {
	for turn in $(seq "$2"); do
		kyozon events | grep -q "$1" && return
		sleep 0.1
	done
	return 1
}

wait_for "monitoring Linux" 600 || exit 1
for turn in 1 2 3; do
	for how in program shell namespace; do
		/tmp/set-user-id gains $how || echo "gains $how: failed"
		/tmp/set-user-id gains $how & all="$all $!"
	done
done
wait $all
echo "with a reason: $(kyozon events | grep -c ' FINDING ') findings"
for case in /cases/*.sh; do
	rm -f /tmp/go
	/m/victim user /tmp/go & victim=$!
	sleep 2
	. "$case"
	attack || echo "attack: failed"
	outcome="not found"
	wait_for " FINDING $found" 50 && outcome=found
	echo undo >/proc/kyozon-attacks
	wait_for " note  *${found%% .*}: gone" 80 && outcome="$outcome, gone after undo"
	echo "case $(basename "$case" .sh): $outcome"
	[ "$outcome" = "found, gone after undo" ] || kyozon events >&2
	kill $victim
	wait $victim
done
rmmod kyozon-attacks
kyozon unload
