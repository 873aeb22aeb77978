# crowd.sh, with $threads and $rests: hides a process while as many threads sleep, and again for each of the rests.
insmod /m/kyozon-attacks.ko 2>/dev/null
echo 4194304 >/proc/sys/kernel/pid_max
echo 200000 >/proc/sys/kernel/threads-max
if [ "$threads" != 0 ]; then
	setsid /m/crowd "$threads" </dev/null >/tmp/crowd 2>&1 &
	until grep -q ready /tmp/crowd; do sleep 0.5; done
fi
kyozon load >/dev/null || exit 1
until kyozon events | grep -q 'monitoring Linux'; do sleep 1; done

# count KIND: prints the number of events of that kind about a hidden process.
count() {
	kyozon events --json | grep '"class":"process.hidden"' | grep -c "\"kind\":\"$1\""
}

# field NAME: prints a field of the check's status.
field() {
	kyozon status --json | tr -d ' \n' | tr '{}' '\n\n' | grep '"name":"tasks"' | sed "s/.*\"$1\":\([0-9]*\).*/\1/"
}

dmesg -c >/dev/null
for rest in $rests; do
	setsid sleep 100000 </dev/null >/dev/null 2>&1 &
	victim=$!
	sleep "$rest"
	before=$(count finding) repaired=$(count repair)
	echo "hide-list $victim" >/proc/kyozon-attacks || exit 1
	until [ "$(count finding)" -gt "$before" ]; do sleep 1; done
	echo "pass: $(field wall_ns) ns, $(field pass_ns) ns of CPU time, $(field items) tasks"
	until [ "$(count repair)" -gt "$repaired" ]; do sleep 1; done
	echo "undo hide-list" >/proc/kyozon-attacks
	kill $victim
done
dmesg | grep -o 'kyozon-attacks: [a-z-]* done: .*'
kyozon events --json
