# registers.sh: loads the monitor with its defaults, runs every attack in /cases, and prints the outcome of each.
. /lib.sh
insmod /m/kyozon-attacks.ko 2>/dev/null
kyozon load >/dev/null || exit 1
for turn in $(seq 300); do
	kyozon status | grep -q ' gates: [1-9]' && break
	sleep 0.1
done
# In mode vmm, the hypervisor watches the writes on other CPUs, but only once every check has learned: see transient.
others=/other/*.sh
[ "$KYOZON_ISOLATION" != vmm ] && [ "$(nproc)" != 1 ] || others=
for case in /cases/*.sh $others; do
	. "$case" # defines $attack, and $what and $found of its finding's line
	outcome="not found"
	echo "$attack" >/proc/kyozon-attacks || exit 1
	wait_for_line "FINDING $what.*: $found" && outcome=found
	echo "undo ${attack%% *}" >/proc/kyozon-attacks
	wait_for_line "note .*$what.*: gone" && outcome="$outcome, gone after undo"
	case ${case#/} in other/*) kind="other CPU" ;; *) kind=case ;; esac
	echo "$kind $(basename "$case" .sh): $outcome"
	[ "$outcome" = "found, gone after undo" ] || { kyozon events; kyozon status; } >&2
done
[ "$others" ] || echo "other CPUs: none is tried"
# Nothing else was reported. A register may be reported for each CPU.
echo "findings $(kyozon events | sed -n 's/.*FINDING \([^:]*\):.*/\1/p' | sort -u | grep -c .)"
kyozon unload
