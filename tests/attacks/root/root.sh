# root.sh MODE [CASE]: runs every attempt in /cases, or only CASE, against a cokernel loaded with --isolation MODE.
# Without isolation the attempt must work; otherwise it would prove nothing about the wall.
#
# A case defines:
#   attempt()        the attacker's actions; a failure counts as refused
#   works()          succeeds if the cokernel was harmed, or could have been
#   control=WORD     the outcome without a wall: works (the default), survived or refused
#   wall=WORD        the outcome with a wall: refused, survived, reported, works (docs/limits.md), stated (it works, and
#                    status says so), or emulated (it is reported, and works all the same in this emulator:
#                    docs/emulators.md)
#   report=PATTERN   the wall's report: a line of the events, or of the status if the outcome is "stated"
#   after()          undoes what the attempt left behind
#   options, cpus    options for load; the number of CPUs it needs (1)
#   turns            how often it tries to stop the ticks (3)
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

# rate COMMAND...: prints the ticks per second during COMMAND, by Linux's clock, in hundredths of a second.
rate() {
	ticks_before=$(field ticks) clock_before=$(clock)
	"$@" || return 1
	ticks_after=$(field ticks)
	echo $(((ticks_after - ticks_before) * 100 / ($(clock) - clock_before)))
}

clock() {
	read -r since_boot idle </proc/uptime
	echo "${since_boot%.*}${since_boot#*.}"
}

# passes: prints the passes of the cokernel's check, which makes one at each tick.
passes() {
	field passes
}

# is_changed: succeeds if the cokernel found its memory changed.
is_changed() {
	kyozon events | grep -q 'test keep: word .* was changed'
}

is_stopped() {
	[ "$(field state)" = stopped ]
}

# is_kept RATE USUAL: succeeds if no more than a fifth of the usual ticks is missing.
is_kept() {
	[ "$2" -gt 0 ] && [ $((5 * $1)) -ge $((4 * $2)) ]
}

# stop_ticks WORD...: runs an attempt for half a second, after an undisturbed half second. A busy host takes ticks now
# and then; an attempt that takes some does so every time. One that has to win a race gets more turns.
stop_ticks() {
	for turn in $(seq $turns); do
		usual=$(rate root hold 500)
		during=$(rate root "$@" 500) || return 1
		echo "ticks $during a second, usually $usual" >>/tmp/ticks
		ticks_stopped && [ $((4 * during)) -ge $usual ] || return 0
	done
}

ticks_stopped() {
	! is_kept $during $usual
}

# is_well: succeeds if the cokernel runs, has its usual ticks, and makes a pass at each.
is_well() {
	for turn in 1 2 3; do
		passes_before=$(passes)
		after=$(rate sleep 0.5)
		passed=$(($(passes) - passes_before))
		state_after=$(field state)
		echo "after: $state_after, ticks $after a second, before $before, $passed passes" >>/tmp/ticks
		[ "$state_after" = running ] && is_kept $after $before && is_kept $((2 * passed)) $after && return
	done
	return 1
}

# is_reported: succeeds if the wall has made the expected report since the attempt began.
is_reported() {
	[ -n "$report" ] && kyozon events | sed 1,${seen}d | grep -qE "$report"
}

# wait_for_report: the same, within five seconds: on a busy host a guest may not run for one of them.
wait_for_report() {
	for turn in $(seq 50); do
		is_reported && return
		sleep 0.1
	done
	return 1
}

# outcome: makes the attempt and prints what came of it. Whatever was reported, the cokernel must be well afterwards.
outcome() {
	attempt >/tmp/attempt 2>&1 || {
		is_well && echo refused || echo lost
		return
	}
	if [ $mode = none ] && works; then
		echo works
		return
	fi
	if [ $mode != none ] && [ "$wall" = emulated ]; then
		wait_for_report && echo emulated || echo silent
		return
	fi
	# Meanwhile the cokernel has looked at its memory many times.
	is_well && well=yes || well=no
	if works; then
		[ "$wall" = stated ] && [ $mode != none ] && kyozon status | grep -qE "$report" && echo stated || echo works
	elif [ $well = no ]; then
		echo lost
	elif is_reported; then
		echo reported
	else
		echo survived
	fi
}

try() {
	name=$(basename "$1" .sh)
	control=works wall= report= options= cpus=1 turns=3
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
	before=$(rate sleep 0.5)
	seen=$(kyozon events | wc -l)
	actual=$(outcome)
	echo "case $name: $actual"
	[ $mode = none ] && expected=$control || expected=$wall
	if [ "$actual" != $expected ]; then
		{
			echo "$actual, expected $expected"
			cat /tmp/found /tmp/attempt /tmp/ticks /proc/kyozon-attacks 2>/dev/null
			kyozon events | tail -n 5
		} | sed "s/^/case $name: /" >&2
	fi
	after
	kyozon unload >/dev/null || exit 1
}

for case in ${2:-/cases/*.sh}; do
	try "$case"
done
