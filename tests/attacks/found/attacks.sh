# attacks.sh [--report-only]: loads the monitor, runs every attack in /cases, and prints the outcome of each.
. /lib.sh
kyozon load --isolation "$isolation" "$@" >/dev/null || exit 1
wait_for_line 'monitoring Linux' || exit 1

# events KIND: prints the number of events of that kind.
events() {
	kyozon events --json | grep -c "\"kind\":\"$1\""
}

# wait_for_finding: waits for an event after the first $mark that is the case's finding.
wait_for_finding() {
	for turn in $(seq 150); do
		kyozon events | tail -n +$((mark + 1)) | grep -q " FINDING $text" && return
		sleep 0.1
	done
	return 1
}

# wait_for_repair: waits until there are more than $repaired, and the tampering is undone.
wait_for_repair() {
	for turn in $(seq 150); do
		[ "$(events repair)" -gt $repaired ] && is_back && return
		sleep 0.1
	done
	return 1
}

for case in /cases/*.sh; do
	name=$(basename "$case" .sh)
	target run /tmp/target </dev/null >/dev/null 2>&1 &
	sleep 0.5
	read -r process thread _ </tmp/target
	held=
	. "$case" # defines $attack, $text and is_back(); $held if it is not to be repaired, and why
	mark=$(kyozon events | wc -l) repaired=$(events repair) outcome="not found"
	echo "$attack" >/proc/kyozon-attacks || exit 1
	wait_for_finding && outcome=found
	if [ "$1" = --report-only ]; then
		sleep 0.5
		grep -q present /proc/kyozon-attacks && [ "$(events repair)" = 0 ] && ! is_back && outcome="$outcome, still there"
	elif [ "$held" ]; then
		for turn in $(seq 150); do
			kyozon events | grep -q " note .*$held" && outcome="$outcome, held" && break
			sleep 0.1
		done
		[ "$(events repair)" = $repaired ] || outcome="$outcome, repaired"
	else
		wait_for_repair && outcome="$outcome, repaired"
		echo "undo ${attack%% *}" >/proc/kyozon-attacks
		mark=$(kyozon events | wc -l) repaired=$(events repair)
		echo "$attack" >/proc/kyozon-attacks || exit 1
		wait_for_finding && wait_for_repair && outcome="$outcome, repaired again"
	fi
	echo "case $name: $outcome"
	case $outcome in
	"found, repaired, repaired again" | "found, held" | "found, still there") ;;
	*) { kyozon events; cat /proc/kyozon-attacks; } >&2 ;;
	esac
	echo undo >/proc/kyozon-attacks
	rm /tmp/target
	wait
done
kyozon unload
