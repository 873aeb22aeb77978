# quiet.sh, with $isolation and $seconds: loads the monitor with its defaults, then for that long makes hooks in all
# legitimate ways, and prints how often and what was found. Actions overlap: a later one meets what an earlier one left.
tracing=/sys/kernel/tracing
mount -t tracefs tracefs $tracing 2>/dev/null
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts 2>/dev/null
ip link set lo up
kyozon load --isolation "$isolation" >/dev/null || exit 1
for turn in $(seq 60); do
	kyozon events | grep -q "monitoring Linux" && break
	sleep 1
done

now() {
	cut -d . -f 1 /proc/uptime
}

# count NAME: counts NAME once more. Actions run side by side.
count() {
	echo "$1" >>/tmp/counts
}

# hooks NAME...: what modules hook, with a listed one; then it is unloaded, which removes what is left.
hooks() {
	insmod /m/kyozon-attacks.ko || return
	for hook in hook-netfilter hook-packet hook-keyboard "hook-notifier $1" hook-format "hook-timer $2" hook-work \
		"hook-thread kworker/0:7" "hook-kprobe wake_up_new_task" "hook-kretprobe vfs_write" "hook-ftrace __x64_sys_setfsuid" \
		"hook-tracepoint sched_process_fork"; do
		echo "$hook" >/proc/kyozon-attacks && count hooked
	done
	sleep 0.$3
	[ "$4" = left ] || echo undo >/proc/kyozon-attacks
	rmmod kyozon-attacks && count unloaded
}

# Twice: the second round loads what the first one unloaded.
modules() {
	for file in /kyozon/modules/* /kyozon/modules/*; do
		case $file in *virtio*) continue ;; esac
		name=${file##*/??-}
		name=${name%.ko}
		if grep -q "^$name " /proc/modules; then
			rmmod "$name" 2>/dev/null # it may be in use
		else
			insmod "$file" 2>/dev/null && count loads
		fi
	done
}

# Some cannot be made while their module is not loaded.
devices() {
	ip link add veth-a type veth peer name veth-b && ip link set veth-a up && ip link set veth-b up && count devices
	ip link add br0 type bridge && ip link set veth-a master br0 && count devices
	ip link add dummy7 type dummy && ip link set dummy7 up && count devices
	tunctl -t tun7 >/dev/null && ip link set tun7 up && count devices
	sleep 0.1
	for name in br0 veth-a dummy7 tun7; do ip link del $name; done
}

tracers() {
	echo "vfs_*" >$tracing/set_ftrace_filter
	for tracer in function function_graph nop; do
		echo $tracer >$tracing/current_tracer && count traced
		sleep 0.1
	done
	echo "p:one vfs_read" >$tracing/kprobe_events
	echo "r:two tcp4_seq_show" >>$tracing/kprobe_events
	echo "p:three __x64_sys_getdents64" >>$tracing/kprobe_events
	echo 1 >$tracing/events/kprobes/enable && count probed
	echo 1 >$tracing/events/syscalls/sys_enter_getdents64/enable
	echo 1 >$tracing/events/sched/enable
	ls /proc >/dev/null
	cat /proc/net/tcp >/dev/null
	sleep 0.2
	for event in kprobes syscalls sched; do echo 0 >$tracing/events/$event/enable; done
	echo >$tracing/kprobe_events
	echo >$tracing/set_ftrace_filter
	echo >$tracing/trace
}

programs() {
	bpf tracepoint sys_enter 50 &
	bpf both vfs_read 80 && count attached
	bpf tracepoint sched_switch 30 && count attached
	wait $!
}

work() {
	busy packets 3 && busy terminals 4 && busy timers 3 && busy mounts 4 && busy spaces 4 && count rounds
	busy filters 3 && count filters
}

end=$(($(now) + seconds))
while [ "$(now)" -lt $end ]; do
	work &
	worker=$!
	hooks netdev high 1 left
	wait $worker
	devices 2>/dev/null
	programs
	tracers &
	worker=$!
	hooks module low 3
	wait $worker
	work
	modules
	hooks reboot high 2
done
sleep 12
for what in hooked unloaded loads devices traced probed attached rounds filters; do
	echo "$what $(grep -cx $what /tmp/counts)"
done
kyozon events | grep FINDING >&2
echo "findings $(kyozon events | grep -c FINDING)"
kyozon unload
