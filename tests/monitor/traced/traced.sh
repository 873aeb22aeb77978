# traced.sh: prints how long a pass of the check text takes: alone, with 113 probes, and with every function traced.
tracing=/sys/kernel/tracing
mount -t tracefs tracefs $tracing 2>/dev/null

# status KEY: prints a number from the status of the check text, or of the cokernel.
status() {
	kyozon status --json | sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p" | tail -n 1
}

# pass NAME: prints how long the last of two whole passes took by the clock, and the overruns meanwhile.
pass() {
	first=$(status passes) overruns=$(status overruns)
	while [ $(status passes) -lt $((first + 3)) ]; do sleep 0.2; done
	echo "$1: $(($(status wall_ns) / 10000000)) hundredths of a second, $(status pass_ns) ns of CPU," \
		"$(($(status overruns) - overruns)) overruns"
}

now() {
	sed 's/\([0-9]*\)\.\([0-9]*\) .*/\1\2/' /proc/uptime
}

kyozon load >/dev/null || exit 1
begin=$(now)
for turn in $(seq 60); do
	kyozon events | grep -q 'monitoring Linux' && break
	sleep 1
done
echo "learned: $(($(now) - begin)) hundredths of a second"
pass alone
n=0
for function in $(grep -E '^(vfs|do|sys|ip|tcp|ext4|__x64_sys)_[a-z0-9_]*$' $tracing/available_filter_functions |
	head -n 113); do
	echo "p:k$n $function" >>$tracing/kprobe_events && n=$((n + 1))
done 2>/dev/null
echo "probes $n"
echo 1 >$tracing/events/kprobes/enable
pass probes
echo 0 >$tracing/events/kprobes/enable
echo function >$tracing/current_tracer
pass functions
echo nop >$tracing/current_tracer
kyozon events | grep -E 'FINDING|FAULT'
kyozon unload
