# sh /watch.sh SECONDS [SEED]: loads the monitor, runs quiet.sh for SECONDS, and shows the monitor's findings.
# $BUDGET: how long the cokernel may run at a time. 2 ms on an emulator correspond to 200 us on a machine, its default.

# passes NAME: prints the number of complete passes of a check. The command can fail for a while if a storm has used up
# memory or PIDs.
passes() {
	for turn in $(seq 50); do
		kyozon status >/tmp/status 2>&1
		got=$(sed -n "s/^check *$1: \([0-9]*\) passes.*/\1/p; s/^check *$1: learning.*/0/p" /tmp/status)
		[ "$got" ] && break
		cat /tmp/status >>/tmp/odd
		sleep 0.2
	done
	echo ${got:-0}
}

# wait_for_passes TASKS TEXT: waits until both checks have more passes than that, at most 100 s.
wait_for_passes() {
	for turn in $(seq 500); do
		[ $(passes tasks) -gt $1 ] && [ $(passes text) -gt $2 ] && return
		sleep 0.2
	done
	kyozon status >&2
	return 1
}

kyozon load --budget ${BUDGET:-2000} || exit 1
# The ring has room for the notes of some minutes. A shortage of memory must not end the reader.
(echo -1000 >/proc/self/oom_score_adj && exec kyozon events --follow) >/tmp/events 2>&1 & follower=$!
wait_for_passes 0 0 || exit 1
tasks=$(passes tasks) text=$(passes text)
sh /quiet.sh "$@" || exit 1
during="tasks $(($(passes tasks) - tasks)) text $(($(passes text) - text))"
wait_for_passes $(passes tasks) $(($(passes text) + 1)) || exit 1
kyozon status
sed 's/^/late answer: /' /tmp/odd 2>/dev/null | head -n 20
echo "passes meanwhile: $during"
# An emulator on a busy machine now and then does not run for some ticks.
sleep 1
kill $follower || { echo "nobody follows the events"; tail -n 3 /tmp/events; exit 1; } >&2
grep -vE ' note |wall: no tick for [0-9]{1,3} ms' /tmp/events >&2 && exit 1
grep -q 'monitoring Linux' /tmp/events || { echo "the events lack their beginning" >&2; exit 1; }
kyozon status | grep -q "^state *running" && kyozon unload
