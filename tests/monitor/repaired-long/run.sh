# run.sh KERNEL ISOLATION CASE SECONDS: in a guest, tampers once as that case of attacks/found does, waits for the
# repair, and makes ordinary changes for SECONDS of the guest's time. Prints that time, or what went wrong.
module=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks") || exit 1
patched=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks/patched") || exit 1
for program in tasks labels bpf rebuild; do
	cc -static -O2 -pthread -o "$SCRATCH/$program" "../quiet/$program.c" || exit 1
done
cc -static -O2 -o "$SCRATCH/victim" ../../attacks/reported/victim.c || exit 1
cc -static -pthread -O1 -Wall -o "$SCRATCH/target" ../../attacks/module/target.c || exit 1
# The emulator and the watchdogs as for monitor/quiet-long.
words="watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=200 memhp_default_state=online_movable"
kyozon-lab run --kyozon --smp 2 --kernel "$1" --accel tcg,thread=single --timeout $((3 * $4 + 900)) \
	$(printf -- "--qemu=%s " -m slots=1,maxmem=4G -object memory-backend-ram,id=memory,size=128M \
		-device pc-dimm,memdev=memory) \
	--append "$words KYOZON_ISOLATION=$2" --put "$patched:/m/patched.ko" \
	$(printf -- "--module %s " dummy veth tun overlay nf_conntrack nf_tables bridge loop) \
	$(printf -- "--put $SCRATCH/%s:/bin/%s " tasks tasks labels labels bpf bpf rebuild rebuild victim victim \
		target target) \
	--put "$module:/m/kyozon-attacks.ko" --put "../../attacks/found/cases/$3.sh:/case.sh" \
	--put "../../colocation/lib.sh:/lib.sh" --put "../quiet/quiet.sh:/quiet.sh" --put "after.sh:/after.sh" \
	"sh /after.sh $4"
