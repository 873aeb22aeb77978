# reported.sh, with $isolation: loads the monitor with its defaults, lets processes gain privileges from Linux, runs
# the attacks of /cases, and prints their outcome.
#
# A case defines attack(), on the process $victim, and $found, how the text of its finding begins; besides, $kind, what
# kind of process it is about, if not an ordinary user's, $held, how a note says why it is not repaired, if others of
# its class are, and undo(), if /proc/kyozon-attacks cannot undo it.
insmod /m/kyozon-attacks.ko 2>/dev/null
cp /m/victim /tmp/set-user-id
chmod 4755 /tmp/set-user-id
mkdir /tmp/allowed
mount -t tmpfs none /tmp/allowed
cp /m/victim /tmp/allowed/victim
/m/victim allow /tmp/allowed/victim || echo "allow: failed"
kyozon load --isolation "$isolation" >/dev/null || exit 1

# wait_for PATTERN SECONDS: waits until a line of the events matches.
wait_for() {
	for turn in $(seq $((2 * $2))); do
		kyozon events | grep -q "$1" && return
		sleep 0.5
	done
	return 1
}

wait_for "monitoring Linux" 60 || exit 1
for turn in 1 2 3; do
	for how in program shell namespace; do
		/tmp/set-user-id gains $how || echo "gains $how: failed"
		/tmp/set-user-id gains $how & all="$all $!"
	done
	/tmp/allowed/victim gains capability || echo "gains capability: failed"
done
wait $all
/tmp/set-user-id storm 200
echo "with a reason: $(kyozon events | grep -c ' FINDING ') findings"
for case in /cases/*.sh; do
	rm -f /tmp/go
	kind=user held=
	undo() { echo undo >/proc/kyozon-attacks; }
	eval "$(grep ^kind= "$case")"
	/m/victim $kind /tmp/go & victim=$!
	sleep 2
	. "$case"
	attack || echo "attack: failed"
	outcome="not found"
	wait_for " FINDING $found" 5 && outcome=found
	[ -z "$held" ] || wait_for " note  *$held" 2 || outcome="$outcome, not held"
	undo
	wait_for " note  *${found%% .*}: gone" 8 && outcome="$outcome, gone after undo"
	echo "case $(basename "$case" .sh): $outcome"
	[ "$outcome" = "found, gone after undo" ] || kyozon events >&2
	kill $victim
	wait $victim
done
rmmod kyozon-attacks
kyozon unload
