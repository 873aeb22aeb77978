# twice.sh: links a process a second time after the monitor repaired it, and shows that one of the two is taken back.
. /lib.sh
kyozon load --isolation "$isolation" >/dev/null || exit 1
target run /tmp/target </dev/null >/dev/null 2>&1 &
sleep 0.5
read -r process thread _ </tmp/target
dmesg -c >/dev/null
echo "hide-twice $process" >/proc/kyozon-attacks || exit 1
wait_for_line "hidden process: target, pid $process: repaired" || { kyozon events >&2; exit 1; }
echo undo >/proc/kyozon-attacks
outcome="linked twice"
wait_for_line "pid $process: links contradict each other after the repair, which is taken back" && outcome="taken back"
kill -0 $process || outcome="$outcome, lost"
echo "linked again: $outcome"
[ "$outcome" = "taken back" ] || { kyozon events; kyozon status; } >&2

# Its exit, and walks over the lists that it was in. A PID that a task is left at would not be freed.
rm /tmp/target
wait
for turn in 1 2 3 4 5; do (true); ls /proc >/dev/null; target listed 1234; done
[ -e /proc/$process ] && echo "pid $process is left" && exit 1
dmesg | grep -E 'BUG|WARNING|corruption|Oops|stall' >&2 && exit 1
echo "after the exit: intact"
kyozon unload
