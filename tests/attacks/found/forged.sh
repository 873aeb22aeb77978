# forged.sh: hides processes and threads by members that lead from one structure to another, and shows that the monitor
# finds them, and puts back what it can without harm.
. /lib.sh
kyozon load --isolation "$isolation" >/dev/null || exit 1
wait_for_line 'monitoring Linux' || exit 1
dmesg -c >/dev/null

# try ATTACK PATTERN TEST: prints whether a finding matches, and whether the test succeeds afterwards.
try() {
	mark=$(kyozon events | wc -l) outcome="not found"
	echo "$1" >/proc/kyozon-attacks || exit 1
	for turn in $(seq 150); do
		kyozon events | tail -n +$((mark + 1)) | grep -q "FINDING $2" && outcome=found && break
		sleep 0.2
	done
	for turn in $(seq 50); do
		$3 && outcome="$outcome, $3" && break
		sleep 0.2
	done
	echo undo >/proc/kyozon-attacks
	# What the passes had begun to suspect belongs to this attack, not to the next one.
	sleep 0.5
	kyozon events | tail -n +$((mark + 1)) | grep FINDING | grep -qv " $2" && outcome="$outcome, and others"
	echo "${1%% *}: $outcome"
	case $outcome in "found, $3") ;; *) kyozon events | tail -n +$((mark + 1)) >&2 ;; esac
}
held() { kyozon events | tail -n +$((mark + 1)) | grep -q "not repaired"; }
listed() { ls /proc/$process/task | grep -qx "$thread"; }
first() { [ "$(find /proc/$process/task -maxdepth 1 | sed -n 2p)" = "/proc/$process/task/$process" ]; }

target run /tmp/target </dev/null >/dev/null 2>&1 &
target run /tmp/other </dev/null >/dev/null 2>&1 &
target idle /tmp/idle </dev/null >/dev/null 2>&1 &
sleep 1
read -r process thread _ </tmp/target
read -r other _ </tmp/other
read -r idle _ </tmp/idle
try "forge-number $process" "hidden process: target, pid $process " held
try "share-pid $idle $other" "hidden process: target, pid $idle " held
try "forge-pid $thread" "hidden thread: target, tid $thread " listed
try "forge-leader $idle" "hidden [a-z]*: target, [pt]id $idle " held
# Linux 6.1 has a list of each process's threads that begins at its first one.
begins="\|hidden thread: target, tid $idle of \|damaged thread list: "
try "fake-leader $idle" "\(hidden process: , pid $idle $begins\)" held
try "hide-first $process" "hidden process: target, pid $process " first
rm /tmp/target /tmp/other /tmp/idle
wait
dmesg | grep -E 'BUG|WARNING|corruption|Oops|stall' >&2
kyozon unload
