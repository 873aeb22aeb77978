# disarm.sh, with $isolation: loads the monitor with the action "disarm", runs the attacks of /cases as one piece of
# malware, and prints what became of each hook, and whether Linux calls it then: first of a listed module, then of one
# that is hidden.
#
# A case defines $attack, and $hook: how the monitor's line about its hook goes on, a pattern. A case of /cases/taken
# also has $does: a command that makes Linux call the hook; none if the test cannot. Each is shown to be called first.
attacks=/proc/kyozon-attacks
insmod /m/kyozon-attacks.ko 2>/dev/null
ip link set lo up

# calls FILE: prints how often each hook of /cases/taken was called, by the attacks in FILE.
calls() {
	sed -n 's/^\([a-z-]*\) tsc.* calls \([0-9]*\)$/\1 \2/p' "$1"
}

# use: makes Linux call each hook.
use() {
	for case in /cases/taken/*.sh; do
		. "$case"
		eval "$does" >/dev/null 2>&1
	done
}

# wait_for PATTERN HUNDREDTHS: waits until an event after the first $mark matches.
mark=0
wait_for() {
	until=$(($(now) + $2))
	until sed "1,${mark}d" /tmp/log | grep -q "$1"; do
		[ "$(now)" -lt $until ] || { cat /tmp/log >&2; return 1; }
		sleep 0.5
	done
}

# now: prints the guest's time in hundredths of a second.
now() {
	sed 's/\([0-9]*\)\.\([0-9]*\) .*/\1\2/' /proc/uptime
}

for case in /cases/taken/*.sh; do
	. "$case"
	[ -n "$does" ] || continue
	echo "$attack" >$attacks || exit 1
	eval "$does" >/dev/null 2>&1
	cat $attacks >/tmp/calls
	calls /tmp/calls | grep -q . || echo "$attack: is not called"
	echo undo >$attacks
done

printf '"%s" = "disarm"\n' hook.sensitive hook.hidden module.hidden >/tmp/policy
kyozon load --isolation "$isolation" --policy /tmp/policy >/dev/null || exit 1
# The ring has not room for all.
kyozon events --follow </dev/null >/tmp/log 2>/dev/null &
wait_for 'note *monitoring Linux' 9000 || exit 1

# disarm NAME: runs the attacks, and waits until the module is disarmed.
disarm() {
	name=$1
	mark=$(wc -l </tmp/log)
	[ "$name" = listed ] || echo hide-module >$attacks
	for case in /cases/*/*.sh; do
		. "$case"
		echo "$attack" >$attacks || echo "$attack: failed"
	done
	wait_for "REPAIR .*$2: disarmed: .* hooks taken out, .* left" 3000
	# Linux calls what is left of the hooks for 30 seconds.
	cat $attacks >/tmp/before
	until=$(($(now) + 3000))
	while [ "$(now)" -lt $until ]; do
		use
		sleep 1
	done
	cat $attacks >/tmp/after
	sed "1,${mark}d" /tmp/log >/tmp/events
	for case in /cases/*/*.sh; do
		. "$case"
		outcome="no line"
		! grep -q ": left: $hook" /tmp/events || outcome="left"
		! grep -q ": taken out: $hook" /tmp/events || outcome="taken out"
		calls /tmp/before >/tmp/1
		called="not called"
		calls /tmp/after | grep -vxFf /tmp/1 | grep -q "^${attack%% *} " && called=called
		# The module's own structures keep what their pointers were made: some hooks of the second group lead nowhere.
		[ "$name" = listed ] && outcome="$outcome, $called" || outcome=$called
		case=${case#/cases/}
		echo "$name ${case%.sh}: $outcome"
		[ "$outcome" = "${outcome#no line}" ] || shown=/tmp/events
	done
	cat ${shown:-/dev/null} >&2
	# Another probe comes to the tracepoint of the case "tracepoint", and goes, before the module takes its own away.
	for enable in 1 0; do
		echo $enable >/sys/kernel/tracing/events/sched/sched_process_fork/enable
		uname >/dev/null
	done
	echo undo >$attacks
}
mount -t tracefs none /sys/kernel/tracing
disarm listed 'module kyozon_attacks'
wait_for 'sensitive function hooked: filldir64.*: gone' 3000
disarm hidden 'in no listed module'

# A live patch stays one for Linux, which can disable it as before.
mark=$(wc -l </tmp/log)
insmod /m/patched.ko function=tcp4_seq_show shows=evil
wait_for 'REPAIR .*module patched: disarmed: 1 hooks taken out, 0 left' 3000 && outcome="taken out"
! grep evil /proc/net/tcp || outcome="in force"
for turn in $(seq 60); do
	echo 0 >/sys/kernel/livepatch/patched/enabled # refused while processes change over
	sleep 0.5
	[ -e /sys/kernel/livepatch/patched ] || break
done 2>/dev/null
rmmod patched && grep -q local_address /proc/net/tcp && outcome="$outcome, leaves"
echo "live patch: $outcome"

rmmod kyozon-attacks
kyozon unload
dmesg | grep -E 'WARNING|BUG|Oops|hook not found|not registered|not found|stall' && echo "Linux complains"
true
