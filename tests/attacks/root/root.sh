# root.sh MODE [CASE]: runs every attempt in /cases, or only CASE, against a cokernel loaded with --isolation MODE.
# Without isolation the attempt must work; otherwise it would prove nothing about the wall.
#
# A case defines:
#   attempt()        the attacker's actions; a failure counts as refused
#   works()          succeeds if the cokernel was harmed, or could have been
#   control=WORD     the outcome without a wall: works (the default), survived or refused
#   wall=WORD        the outcome with a wall: refused, survived, reported, stated (it works, and status says so), or
#                    emulated (it is reported, and works all the same in this emulator: docs/emulators.md)
#   report=PATTERN   the wall's report: a line of the events, or of the status if the outcome is "stated"
#   after()          undoes what the attempt left behind
#   options, cpus    options for load; the number of CPUs it needs (1)
. /lib.sh
insmod /m/kyozon-attacks.ko 2>/dev/null
mode=$1
machine_cpus=$(grep -c ^processor /proc/cpuinfo)
cpu=$((machine_cpus - 1)) # the cokernel has the last CPU, the attacker the first

# root WORD...: runs an attempt of root.c.
root() {
	taskset 1 sh -c 'echo "root $*" >/proc/kyozon-attacks' root "$@"
}

# answer: prints the attempt's result.
answer() {
	tail -n 1 /proc/kyozon-attacks
}

# ticks_during COMMAND...: prints the number of ticks during COMMAND.
ticks_during() {
	ticks_before=$(field ticks)
	"$@" || return 1
	echo $(($(field ticks) - ticks_before))
}

# is_changed: succeeds if the cokernel found its memory changed.
is_changed() {
	kyozon events | grep -q 'test keep: word .* was changed'
}

is_stopped() {
	[ "$(field state)" = stopped ]
}

# stop_ticks WORD...: runs an attempt for a second, after counting the ticks of an undisturbed second.
stop_ticks() {
	usual=$(ticks_during root hold 1000)
	during=$(ticks_during root "$@" 1000) || return 1
	echo "ticks $during, usually $usual" >/tmp/ticks
}

ticks_stopped() {
	[ $((2 * during)) -lt $usual ]
}

# is_alive: succeeds if the cokernel runs and has ticks.
is_alive() {
	[ "$(field state)" = running ] && [ "$(ticks_during sleep 1)" -gt 10 ]
}

# is_reported: succeeds if the wall has made the expected report since the attempt began.
is_reported() {
	[ -n "$report" ] && kyozon events | sed 1,${seen}d | grep -qE "$report"
}

# wait_for_report: the same, within 1.5 seconds.
wait_for_report() {
	for turn in $(seq 15); do
		is_reported && return
		sleep 0.1
	done
	return 1
}

outcome() {
	attempt >/tmp/attempt 2>&1 || {
		is_alive && echo refused || echo lost
		return
	}
	if [ $mode != none ] && [ "$wall" = emulated ]; then
		wait_for_report && echo emulated || echo silent
		return
	fi
	for turn in $(seq 20); do
		works && {
			[ "$wall" = stated ] && [ $mode != none ] && kyozon status | grep -qE "$report" && echo stated || echo works
			return
		}
		is_reported && break
		sleep 0.1
	done
	if ! is_alive; then
		echo lost
	elif is_reported; then
		echo reported
	else
		echo survived
	fi
}

try() {
	name=$(basename "$1" .sh)
	control=works wall= report= options= cpus=1
	works() { false; }
	after() { true; }
	. "$1"
	if [ $machine_cpus -lt $cpus ]; then
		echo "case $name: needs $cpus CPUs"
		return
	fi
	rm -f /tmp/ticks
	load --isolation $mode --hz 200 --cpu $cpu --serial 0x3e8 --parameter 16 $options >/dev/null || exit 1
	wait_for_line 'test keep: begin' || exit 1
	root find
	answer >/tmp/found
	seen=$(kyozon events | wc -l)
	actual=$(outcome)
	echo "case $name: $actual"
	[ $mode = none ] && expected=$control || expected=$wall
	if [ "$actual" != $expected ]; then
		echo "case $name: $actual, expected $expected" >&2
		cat /tmp/found /tmp/attempt /tmp/ticks /proc/kyozon-attacks >&2 2>/dev/null
		kyozon events | tail -n 5 >&2
	fi
	after
	kyozon unload >/dev/null || exit 1
}

for case in ${2:-/cases/*.sh}; do
	try "$case"
done
