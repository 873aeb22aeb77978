# root.sh MODE [CASE]: every attempt below /cases, or CASE alone, against a cokernel that was loaded with
# --isolation MODE. Without isolation the attempt must work, or else it would prove nothing of the wall.
#
# A case says:
#   attempt()        what the attacker does; where it fails, that is a refusal
#   works()          whether the cokernel was harmed, or could have been
#   control=WORD     what comes of it without a wall: works (where nothing is said), survived or refused
#   wall=WORD        what comes of it with one: refused, survived, reported, stated (it works, and status says so), or
#                    emulated (reported, and then it works all the same in this emulator: docs/emulators.md)
#   report=PATTERN   what the wall says: a line of the events, or of the status where it is "stated"
#   after()          puts back what the attempt left behind
#   options, cpus    for load; how many CPUs it needs (1)
. /lib.sh
insmod /m/kyozon-attacks.ko 2>/dev/null
mode=$1
machine_cpus=$(grep -c ^processor /proc/cpuinfo)
cpu=$((machine_cpus - 1)) # the cokernel's, the last; the attacker has the first

# root WORD...: a word of root.c.
root() {
	taskset 1 sh -c 'echo "root $*" >/proc/kyozon-attacks' root "$@"
}

# answer: what that came to.
answer() {
	tail -n 1 /proc/kyozon-attacks
}

# ticks_during COMMAND...: how many ticks came meanwhile.
ticks_during() {
	ticks_before=$(field ticks)
	"$@" || return 1
	echo $(($(field ticks) - ticks_before))
}

# is_changed: whether the cokernel found its memory changed.
is_changed() {
	kyozon events | grep -q 'test keep: word .* was changed'
}

is_stopped() {
	[ "$(field state)" = stopped ]
}

# stop_ticks WORD...: an attempt that lasts a second. How many ticks there are in such a time is seen right before.
stop_ticks() {
	usual=$(ticks_during root hold 1000)
	during=$(ticks_during root "$@" 1000) || return 1
	echo "ticks $during, usually $usual" >/tmp/ticks
}

ticks_stopped() {
	[ $((2 * during)) -lt $usual ]
}

# is_alive: it runs and has ticks.
is_alive() {
	[ "$(field state)" = running ] && [ "$(ticks_during sleep 1)" -gt 10 ]
}

# is_reported: whether the wall said what it should, since the attempt began.
is_reported() {
	[ -n "$report" ] && kyozon events | sed 1,${seen}d | grep -qE "$report"
}

# is_told: the same, within a second and a half.
is_told() {
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
		is_told && echo emulated || echo silent
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
	load --isolation $mode --hz 200 --cpu $cpu --serial 0x3e8 --parameter 16 $options >/dev/null && wait_for_line 'test keep: begin' || exit 1
	root find
	answer >/tmp/found
	seen=$(kyozon events | wc -l)
	came=$(outcome)
	echo "case $name: $came"
	[ $mode = none ] && wanted=$control || wanted=$wall
	if [ "$came" != $wanted ]; then
		echo "case $name: $came, expected $wanted" >&2
		cat /tmp/found /tmp/attempt /tmp/ticks /proc/kyozon-attacks >&2 2>/dev/null
		kyozon events | tail -n 5 >&2
	fi
	after
	kyozon unload >/dev/null || exit 1
}

for case in ${2:-/cases/*.sh}; do
	try "$case"
done
