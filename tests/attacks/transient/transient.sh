# transient.sh: loads the monitor with its defaults, runs attacks that undo themselves, and prints how many were found.
# wait_for LINES PATTERN: waits for that many events, at most 60 s, and prints their number.
wait_for() {
	for turn in $(seq 120); do
		count=$(kyozon events | grep -cE "$2")
		[ "$count" -ge "$1" ] && break
		sleep 0.5
	done
	echo "$count"
}

insmod /m/kyozon-attacks.ko 2>/dev/null
kyozon load --isolation vmm >/dev/null || exit 1
[ "$(wait_for 1 'monitoring Linux')" = 1 ] || exit 1

# watched: prints the number of Linux's writes that were watched.
watched() {
	kyozon status --json | sed -n 's/^ *"watch": \([0-9]*\),*$/\1/p'
}

before=$(watched)
sleep 3
echo "quiet: $(($(watched) - before)) watched writes"

# Probes side by side, whose breakpoints and jumps come and go faster than the monitor judges them.
mount -t tracefs none /sys/kernel/tracing 2>/dev/null
cd /sys/kernel/tracing || exit 1
for function in vfs_read vfs_write do_sys_openat2 kernel_clone do_exit ksys_read path_openat; do
	for offset in 6 8 9 10 11 12 14 15 17 18 20 22 24 26 28 30 33 36 40; do
		sh -c "echo p:p$function$offset $function+$offset >>kprobe_events" 2>/dev/null
	done
done
cat kprobe_events >/tmp/probes
for round in 1 2 3 4; do
	cat /tmp/probes >kprobe_events
	echo 1 >events/kprobes/enable
	sleep 0.5
	echo 0 >events/kprobes/enable
	echo >kprobe_events
	sleep 0.3
done
cd / || exit 1
[ "$(grep -c . /tmp/probes)" -gt 30 ] && echo "probes: $(kyozon events | grep -c FINDING) findings"

text='kernel text changed for a moment: \w*sys_getuid .*found 31 c0 c3[ 0]*, written by \w+'
# The breakpoint belongs to the function before it.
behind='kernel text changed for a moment: .*found cc 31 c0 c3[ 0]*, written by module kyozon_attacks'
data='read-only data changed for a moment: full_fops\+0x\w* .*leads to module kyozon_attacks'
gate='interrupt gate changed: vector 4 .*leads to module kyozon_attacks'
entry='LSTAR changed: CPU 0: .*leads to module kyozon_attacks'
control='CR0.WP cleared: CPU 0: |CR4.SMEP cleared: CPU 0: '
table='(interrupt|descriptor) table moved: CPU 0: .*leads to module kyozon_attacks'
task='task state segment replaced: CPU 0: .*leads to module kyozon_attacks'
all="FINDING ($text|$behind|$data|$gate|$entry|$control|$table|$task)"

total=0
# round NAME COUNT: waits for that many findings more, and until they are gone.
round() {
	found=$(wait_for $((total + $2)) "$all") gone=$(wait_for $((total + $2)) 'note .*: gone')
	echo "$1: found $((found - total)), gone $((gone - total))"
	[ "$found" = $((total + $2)) ] || { kyozon events; kyozon status; } >&2
	total=$((total + $2))
}

attacks="patch-text patch-rodata hook-gate hook-lstar move-idt move-gdt replace-tss clear-wp clear-smep"
for ms in 0 1 10; do
	for attack in $attacks; do
		echo "hold $ms $attack" >/proc/kyozon-attacks || exit 1
	done
	round "for $ms ms" 9
done
echo "hold 0 patch-swapped" >/proc/kyozon-attacks || exit 1
round "by another instruction" 1
echo "hold 10 patch-behind" >/proc/kyozon-attacks || exit 1
round "behind a breakpoint" 1
echo "findings $(kyozon events | grep -c FINDING)"
kyozon unload
