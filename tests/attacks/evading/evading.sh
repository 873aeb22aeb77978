# evading.sh: loads the monitor with its defaults, has an attacker tamper between its looks for three seconds, and
# prints what was found.
attacks=/proc/kyozon-attacks
insmod /m/kyozon-attacks.ko 2>/dev/null
kyozon load >/dev/null || exit 1
for turn in $(seq 60); do
	kyozon events | grep -q 'monitoring Linux' && break
	sleep 0.5
done
echo "evade entry,text,gate,hook" >$attacks || exit 1
# The cokernel's CPU stays idle, for the attacker's beacon.
taskset -c 1 sleep 3
kyozon events | sed -n 's/.*FINDING //p' >/tmp/findings
echo undo >$attacks

entry='LSTAR changed: CPU [01]: .*leads to module kyozon_attacks'
text='kernel text changed.*: \w*sys_getuid .*found 31 c0 c3'
gate='interrupt gate changed: vector 4 .*leads to module kyozon_attacks'
hook='operations changed: line discipline n_tty .*leads to module kyozon_attacks'
for target in entry text gate hook; do
	eval "pattern=\$$target"
	outcome=missed
	grep -qE "$pattern" /tmp/findings && outcome=found
	echo "${KYOZON_ISOLATION:-none}: $target: $outcome"
done
result=$(dmesg | grep -o 'evade undone: .*')
echo "$result" | grep -qE '(2[5-9]|3)[0-9]+ ticks, .*in place [89][0-9] per cent' && echo "tampered between the ticks"
grep -vE "$entry|$text|$gate|$hook" /tmp/findings >/tmp/others
cat /tmp/others >&2
echo "others $(wc -l </tmp/others)"
for turn in $(seq 100); do
	open=$(kyozon status --json | sed -n 's/^ *"open": \([0-9]*\),*$/\1/p' | awk '{ all += $1 } END { print all + 0 }')
	[ "$open" = 0 ] && break
	sleep 0.2
done
echo "open $open"
[ "$open" = 0 ] || kyozon status >&2
echo "$result" >&2
kyozon unload
