# after.sh SECONDS: loads the monitor, tampers once as /case.sh says, and waits for the repair. Then quiet.sh makes
# ordinary changes for SECONDS, after which the repair must stand, and nothing else have happened.
. /lib.sh
insmod /m/kyozon-attacks.ko 2>/dev/null
kyozon load >/dev/null || exit 1
wait_for_line 'monitoring Linux' || exit 1
target run /tmp/target </dev/null >/dev/null 2>&1 &
process=$!
sleep 0.5
read -r process thread _ </tmp/target
. /case.sh # defines $attack and is_back()

# counts: prints the numbers of all findings and repairs.
counts() {
	kyozon status | sed -n 's/^check .* \([0-9]*\) findings, \([0-9]*\) repairs.*/\1 \2/p' |
		awk '{ findings += $1; repairs += $2 } END { print findings, repairs }'
}

# fail WORDS: prints them and what the monitor and Linux say, and ends.
fail() {
	echo "$*"
	kyozon events
	kyozon status
	dmesg | tail -n 40
	exit 1
} >&2

echo "$attack" >/proc/kyozon-attacks || exit 1
for turn in $(seq 600); do
	[ "$(counts)" = "1 1" ] && is_back && break
	sleep 0.2
done
[ "$(counts)" = "1 1" ] && is_back || fail "not repaired: $(counts)"
began=$(cut -d . -f 1 /proc/uptime)
sh /quiet.sh "$1" >/tmp/out || fail "$(cat /tmp/out)"
took=$(($(cut -d . -f 1 /proc/uptime) - began))
# Each kind of change was made.
grep '^rounds ' /tmp/out | sed 's/ unplugged.*//' | grep -qvE ' 0( |$)' || fail "$(cat /tmp/out)"
is_back || fail "the repair does not stand"
# An emulator on a busy machine now and then does not run for some ticks.
kyozon events | grep -vE ' note |wall: no tick for [0-9]{1,3} ms' | grep -cvE ' (FINDING|REPAIR) ' | grep -qx 0 ||
	fail "other events"
kyozon events | grep -E 'taken back|not repaired' && fail "the repair was taken back"
[ "$(counts)" = "1 1" ] || fail "findings and repairs: $(counts)"
# What was hidden ends as others do.
rm /tmp/target
wait
echo undo >/proc/kyozon-attacks
rmmod kyozon-attacks
dmesg | grep -E 'BUG:|WARNING:|Oops:|detected stalls|corruption|refcount' && fail "a warning of Linux"
kyozon status | grep -q "^state *running" && kyozon unload >/dev/null || fail "the cokernel does not run"
echo "seconds $took"
