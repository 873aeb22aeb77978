# . guest.sh: what quiet-long and repaired-long share.

# clock: prints options for time that is the emulator's: an instruction takes a nanosecond, and none while nothing is to
# be done. Other load on this machine changes nothing then, and the monitor can have its defaults.
clock() {
	printf -- "--qemu=%s " -icount shift=0,sleep=off
}

# guest KERNEL ISOLATION LIMIT [OPTION...] SCRIPT: runs SCRIPT for at most LIMIT seconds in a guest in which quiet.sh
# can make each of its changes.
guest() {
	kernel=$1 isolation=$2 limit=$3
	shift 3
	patched=$(kyozon-lab module --kernel "$kernel" "$TREE/linux/attacks/patched") || return 1
	for program in tasks labels bpf rebuild; do
		cc -static -O2 -pthread -o "$SCRATCH/$program" "$TREE/tests/monitor/quiet/$program.c" || return 1
	done
	cc -static -O2 -o "$SCRATCH/victim" "$TREE/tests/attacks/reported/victim.c" || return 1
	# By the instruction clock, Linux 6.1 does not start a second CPU: docs/emulators.md.
	cpus=2
	case "$kernel $*" in 6.1\ *-icount*) cpus=1 ;; esac
	# A switch of the preemption model patches thousands of sites at once, which Linux's watchdogs take for a hang on a
	# busy machine.
	words="watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=200 memhp_default_state=online_movable"
	# Several threads of the emulator may run breakpoints that Linux has removed: docs/emulators.md.
	kyozon-lab run --kyozon --smp $cpus --kernel "$kernel" --accel tcg,thread=single --timeout "$limit" \
		$(printf -- "--qemu=%s " -m slots=1,maxmem=4G -object memory-backend-ram,id=memory,size=128M \
			-device pc-dimm,memdev=memory) \
		--append "$words KYOZON_ISOLATION=$isolation" --put "$patched:/m/patched.ko" \
		$(printf -- "--module %s " dummy veth tun overlay nf_conntrack nf_tables bridge loop) \
		$(printf -- "--put $SCRATCH/%s:/bin/%s " tasks tasks labels labels bpf bpf rebuild rebuild victim victim) \
		--put "$TREE/tests/monitor/quiet/quiet.sh:/quiet.sh" "$@"
}
