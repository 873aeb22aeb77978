# attacks.sh [OPTION]: loads the monitor, runs every attack in /cases, and prints the outcome of each.
. /lib.sh
insmod /m/kyozon-attacks.ko 2>/dev/null
# With a real-time clock, an emulator on a busy machine stalls for long: much budget, many ticks.
kyozon load --hz 1000 --budget 10000 --serial 0x3e8 "$@" >/dev/null || exit 1
for turn in $(seq 300); do
	kyozon status | grep -q ' text: [1-9]' && break
	sleep 0.1
done

# events KIND: prints the number of events of that kind.
events() {
	kyozon events --json | grep -c "\"kind\":\"$1\""
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
	. "$case" # defines $attack and is_back(); $held if it is not to be repaired, and why
	found=$(events finding) repaired=$(events repair) outcome="not found"
	echo "$attack" >/proc/kyozon-attacks || exit 1
	for turn in $(seq 150); do
		[ "$(events finding)" -gt $found ] && outcome=found && break
		sleep 0.1
	done
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
		found=$(events finding) repaired=$(events repair)
		echo "$attack" >/proc/kyozon-attacks || exit 1
		wait_for_repair && [ "$(events finding)" -gt $found ] && outcome="$outcome, repaired again"
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
