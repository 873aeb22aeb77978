# sh /quiet.sh SECONDS [SEED [show]]: for SECONDS, changes Linux's text and tasks in all legitimate ways, and prints how
# often it did what. Actions overlap: a later one meets what an earlier one left on. $PAUSE: seconds between them.
cd /
seconds=${1:?}
show=$3
seed=${2:-$(od -A n -N 2 -t u2 /dev/urandom | tr -d ' ')}
echo "seed $seed"
tracing=/sys/kernel/tracing
debug=/sys/kernel/debug
[ -d $tracing/events ] || mount -t tracefs tracefs $tracing || exit 1
[ -d $debug/sched ] || mount -t debugfs debugfs $debug || exit 1
ip link set lo up

# Every function. Behind nested paging each of Linux's writes to its text is watched: an emulator takes so long to
# begin to trace them all that Linux complains.
widest=
kyozon status | grep -q 'behind nested paging' && widest='s*'

chance=$seed
# roll N: sets $rolled to a random number below N.
roll() {
	chance=$(((chance * 1103515245 + 12345) & 0x7fffffff))
	rolled=$(((chance >> 12) % $1))
}

# pick WORD...: sets $picked to a random WORD.
pick() {
	roll $#
	shift $rolled
	picked=$1
}

# largest NAME N: raises variable NAME to N if N is larger.
largest() {
	eval "[ $2 -le \$$1 ]" || eval "$1=$2"
}

# A module's file is NN-NAME.ko; NN is the order in which modules can be loaded. Twice: the second round loads what the
# first one unloaded.
modules() {
	for file in /kyozon/modules/* /kyozon/modules/*; do
		case $file in *virtio*) continue ;; esac
		name=${file##*/??-}
		name=${name%.ko}
		if grep -q "^$name " /proc/modules; then
			rmmod $name 2>/dev/null # it may be in use
		else
			insmod $file 2>/dev/null && loads=$((loads + 1)) # a module that it needs may be missing
		fi
	done
}

tracer() {
	roll 4
	every=$rolled
	case $rolled in
	0) echo '*sched*' >$tracing/set_ftrace_filter ;;
	1) echo '*lock*' >$tracing/set_ftrace_filter ;;
	2) echo 'vfs_*' >$tracing/set_ftrace_filter ;;
	3) echo "$widest" >$tracing/set_ftrace_filter ;;
	esac
	pick function function_graph function
	echo $picked >$tracing/current_tracer
	traced=$((traced + 1))
	roll 3
	sleep 0.$rolled
	roll 4
	# Tracing every function slows an emulator down too much to be left on.
	[ $rolled = 0 ] && [ $every != 3 ] || echo nop >$tracing/current_tracer
	echo >$tracing/trace
}

probe_functions="vfs_read vfs_write do_sys_openat2 kernel_clone do_exit __x64_sys_getuid ip_rcv"
probe_functions="$probe_functions schedule_timeout wake_up_new_task"

# A probe on a function's first instruction uses ftrace; later ones are a breakpoint, which becomes a jump if one fits.
probes() {
	n=0
	for function in $probe_functions; do
		roll 3
		case $rolled in
		0) echo "p:k$n $function" ;;
		1) echo "r:k$n $function" ;;
		2)
			for offset in $(offsets $function); do
				echo "p:k$n $function+$offset"
				n=$((n + 1))
			done
			;;
		esac >>/tmp/probes
		n=$((n + 1))
	done
	while read -r probe; do
		echo "$probe" >>$tracing/kprobe_events
	done </tmp/probes 2>/dev/null # Linux refuses offsets inside an instruction
	rm /tmp/probes
	for turn in 1 2 3; do
		echo 1 >$tracing/events/kprobes/enable
		roll 4
		[ $rolled = 0 ] && echo $((turn & 1)) >/proc/sys/debug/kprobes-optimization
		sleep 0.$((turn * rolled))
		work
		largest probed $(grep -c . $debug/kprobes/list)
		largest optimized $(grep -c OPTIMIZED $debug/kprobes/list)
		echo 0 >$tracing/events/kprobes/enable
	done
	echo 1 >/proc/sys/debug/kprobes-optimization
	echo >$tracing/kprobe_events
}

# Offsets at which an instruction may begin; Linux refuses the others.
offsets() {
	roll 24
	for n in 0 1 2 3 4 5; do echo $((rolled + 8 + n)); done
}

events() {
	pick sched syscalls irq kmem timer signal task module .
	echo 1 >$tracing/events/$picked/enable
	work
	echo 0 >$tracing/events/$picked/enable
	echo >$tracing/trace
}

programs() {
	pick sched_switch sched_process_exit sys_enter
	bpf tracepoint $picked 30 &
	pick entry exit both
	how=$picked
	pick vfs_read kernel_clone vfs_open ksys_write
	bpf $how $picked 50 && attached=$((attached + 1))
	wait $!
}

# Static keys and calls; which of them exist depends on the kernel's configuration.
switches() {
	toggle /proc/sys/kernel/sched_schedstats 1 0
	toggle /proc/sys/kernel/bpf_stats_enabled 1 0
	toggle /proc/sys/kernel/task_delayacct 1 0
	toggle /sys/class/net/lo/queues/rx-0/rps_cpus 1 0
	toggle $debug/sched/preempt none voluntary full voluntary
	toggle $debug/sched/features NO_HRTICK NO_WAKEUP_PREEMPTION WAKEUP_PREEMPTION NO_TTWU_QUEUE TTWU_QUEUE
	labels perf 3
	labels stamps 5
	labels tunnels 1
}

# toggle FILE VALUE...
toggle() {
	[ -w "$1" ] || return 0
	file=$1
	shift
	for value; do echo $value >$file; done 2>/dev/null
}

# Virtual network devices and file systems: modules in use, with their static keys and hooks on.
devices() {
	ip link add quiet0 type dummy 2>/dev/null && ip link set quiet0 up && ip link del quiet0
	ip link add quiet1 type veth peer name quiet2 2>/dev/null && ip link set quiet1 up && ip link del quiet1
	mkdir -p /tmp/o/l /tmp/o/u /tmp/o/w /tmp/o/m
	mount -t tmpfs tmpfs /tmp/o/u 2>/dev/null && mkdir /tmp/o/u/u /tmp/o/u/w &&
		mount -t overlay -o lowerdir=/bin,upperdir=/tmp/o/u/u,workdir=/tmp/o/u/w overlay /tmp/o/m 2>/dev/null &&
		umount /tmp/o/m
	umount /tmp/o/u 2>/dev/null
}

# Programs of users that give privileges, and user namespaces.
users() {
	[ -x /tmp/set-user-id ] || { cp "$(which victim)" /tmp/set-user-id && chmod 4755 /tmp/set-user-id; }
	pick program shell namespace
	/tmp/set-user-id gains $picked && /tmp/set-user-id storm 10 && gained=$((gained + 1))
}

# A process that uses too much memory is killed.
shortage() {
	group=/sys/fs/cgroup/quiet
	[ -e /sys/fs/cgroup/cgroup.procs ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup || return
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group && echo 4M >$group/memory.max && echo 0 >$group/memory.swap.max 2>/dev/null
	sh -c "echo 0 >$group/cgroup.procs && exec dd if=/dev/zero of=/dev/null bs=64M count=1" 2>/dev/null
	[ $? != 137 ] || killed=$((killed + 1))
}

# A function is replaced for a while, by one build of a module or the next.
live_patch() {
	[ -e /tmp/patched.ko ] || rebuild /m/patched.ko /tmp/patched.ko 0x4b594f5a4f4e0001 || return
	pick cmdline version
	file=$picked
	pick /m /tmp
	insmod $picked/patched.ko function=${file}_proc_show shows=patched || return
	grep -q '^patched 4b594f5a4f4e000[12]$' /proc/$file && patched=$((patched + 1))
	work
	for turn in $(seq 300); do
		echo 0 >/sys/kernel/livepatch/patched/enabled # refused while processes change over
		sleep 0.2
		[ -e /sys/kernel/livepatch/patched ] || break
	done 2>/dev/null
	rmmod patched
}

# A process that has of the machine only what a container has.
container() {
	mkdir -p /tmp/root && mount -t tmpfs tmpfs /tmp/root && mkdir /tmp/root/bin /tmp/root/dev /tmp/root/proc || return
	mount --bind /bin /tmp/root/bin && mount --bind /dev /tmp/root/dev
	unshare -m -u -i -n -p -f sh -c '
		hostname inside && ip link set lo up && mount -t proc proc /tmp/root/proc &&
			exec chroot /tmp/root sh -c "(sleep 0.3 &) && ping -c 1 -W 1 127.0.0.1 && [ \$\$ = 1 ] && ls /proc/1"
	' >/dev/null && contained=$((contained + 1))
	umount /tmp/root/bin && umount /tmp/root/dev && umount /tmp/root
}

# Linux moves what is in a block of memory, and goes without it for a while.
memory() {
	block=$(ls -d /sys/devices/system/memory/memory* | sort -t y -k 5 -n | tail -n 1)
	grep -q offline $block/state || timeout 20 sh -c "echo offline >$block/state" 2>/dev/null
	grep -q offline $block/state || return # something there cannot be moved
	work
	echo online_movable >$block/state && moved=$((moved + 1))
}

# A CPU that is not the cokernel's goes and comes. Behind the wall none may go.
unplug() {
	kyozon status | grep -q 'on CPU 0, without isolation' || return 0
	cpu=/sys/devices/system/cpu/cpu1/online
	[ -w $cpu ] && echo 0 >$cpu && unplugged=$((unplugged + 1))
	work
	[ -w $cpu ] && echo 1 >$cpu
}

storm() {
	pick forks orphans threads groups execs sessions spaces
	roll 40
	timeout 60 tasks $picked $((rolled + 4)) && storms=$((storms + 1))
}

work() {
	dd if=/dev/zero bs=64k count=4 | sha256sum
	for turn in 1 2 3; do (true); done
	ping -c 1 -W 1 127.0.0.1
	ls -l /proc/1/task/1
} >/dev/null 2>&1

# Tasks start and end all the time, also while text is patched.
background() {
	while :; do
		storm
		work
		roll 5
		sleep ${PAUSE:-0.$((rolled + 4))}
	done
}

# passed: succeeds if the time is over. A storm may have used up the PIDs, so this starts no process.
passed() {
	read -r now idle </proc/uptime
	[ "${now%.*}" -ge $end ]
}

loads=0 traced=0 probed=0 optimized=0 attached=0 storms=0 gained=0 killed=0 patched=0 contained=0 moved=0
unplugged=0 rounds=0
background &
worker=$!
read -r now idle </proc/uptime
end=$((${now%.*} + seconds))
left=
# Every action at least once, in random order.
while ! passed || [ $rounds = 0 ]; do
	left=${left:-modules tracer probes events programs switches storm devices users shortage live_patch
		container memory unplug}
	pick $left
	action=$picked rest=
	for one in $left; do [ $one = $action ] || rest="$rest $one"; done
	left=$rest
	[ -z "$show" ] || echo "$(cat /proc/uptime) $action" >&2
	$action
	[ -n "$left" ] || rounds=$((rounds + 1))
	[ -z "$PAUSE" ] || sleep "$PAUSE"
done
kill $worker
wait
echo nop >$tracing/current_tracer
echo "rounds $rounds loads $loads traced $traced probed $probed optimized $optimized attached $attached" \
	"storms $storms gained $gained killed $killed patched $patched contained $contained moved $moved" \
	"unplugged $unplugged"
