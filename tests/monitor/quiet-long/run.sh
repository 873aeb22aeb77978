# run.sh KERNEL ISOLATION SECONDS [PAUSE]: makes ordinary changes for SECONDS of the guest's time. Prints that time, or
# what the monitor found. With PAUSE seconds between the changes, time is the emulator's: an instruction takes a
# nanosecond, and none while nothing is to be done. Then the monitor has its defaults.
patched=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks/patched") || exit 1
for program in tasks labels bpf rebuild; do
	cc -static -O2 -pthread -o "$SCRATCH/$program" "../quiet/$program.c" || exit 1
done
cc -static -O2 -o "$SCRATCH/victim" ../../attacks/reported/victim.c || exit 1
# A switch of the preemption model patches thousands of sites at once, which Linux's watchdogs take for a hang on a busy
# machine.
words="watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=200 memhp_default_state=online_movable"
clock=
[ -z "$4" ] || clock="--qemu=-icount --qemu=shift=0,sleep=off"
# Several threads of the emulator may run breakpoints that Linux has removed: docs/emulators.md.
kyozon-lab run --kyozon --smp 2 --kernel "$1" --accel tcg,thread=single --timeout $((3 * $3 + 600)) $clock \
	$(printf -- "--qemu=%s " -m slots=1,maxmem=4G -object memory-backend-ram,id=memory,size=128M \
		-device pc-dimm,memdev=memory) \
	--append "$words KYOZON_ISOLATION=$2" --put "$patched:/m/patched.ko" \
	$(printf -- "--module %s " dummy veth tun overlay nf_conntrack nf_tables bridge loop) \
	$(printf -- "--put $SCRATCH/%s:/bin/%s " tasks tasks labels labels bpf bpf rebuild rebuild victim victim) \
	--put "../quiet/quiet.sh:/quiet.sh" --put "../quiet/watch.sh:/watch.sh" "
		[ -z '$4' ] || export PAUSE=$4 BUDGET=200
		began=\$(cut -d . -f 1 /proc/uptime)
		sh /watch.sh $3 >/tmp/out || { cat /tmp/out; exit 1; }
		# Each kind of change was made, and the monitor has looked meanwhile.
		grep '^rounds ' /tmp/out | sed 's/ unplugged.*//' | grep -vE ' 0( |\$)' &&
			grep -E 'meanwhile: tasks [1-9][0-9]* text [1-9]' /tmp/out || { cat /tmp/out; exit 1; }
		dmesg | grep -E 'BUG:|WARNING:|Oops:|detected stalls|corruption' && exit 1
		seconds=\$((\$(cut -d . -f 1 /proc/uptime) - began))
		[ \$seconds -ge $3 ] && echo seconds \$seconds"
