# hold.sh: hides a process with a module that puts it back at its exit, and shows that the monitor only reports it.
. /lib.sh
kyozon load --isolation "$isolation" >/dev/null || exit 1
target run /tmp/target </dev/null >/dev/null 2>&1 &
sleep 0.5
read -r process thread _ </tmp/target
dmesg -c >/dev/null
echo "hide-again $process" >/proc/kyozon-attacks || exit 1
wait_for_line "FINDING.*hidden process: target, pid $process" || exit 1
outcome=found
wait_for_line "pid $process: not repaired: a module's handler" && outcome="$outcome, held"
sleep 1
grep -q "^hide-again .* present" /proc/kyozon-attacks && outcome="$outcome, still hidden"
echo "hidden: $outcome"

# Its exit, and walks over the lists that it was in.
rm /tmp/target
wait
for turn in 1 2 3 4 5; do (true); ls /proc >/dev/null; target listed 1234; done
dmesg | grep -E 'BUG|WARNING|corruption|Oops|stall' >&2 && exit 1
echo "after the exit: intact"
echo undo >/proc/kyozon-attacks
kyozon unload
