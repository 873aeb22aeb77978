# run.sh KERNEL ISOLATION CASE SECONDS: in a guest, tampers once as that case of attacks/found does, waits for the
# repair, and makes ordinary changes for SECONDS of the guest's time. Prints that time, or what went wrong.
module=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks") || exit 1
for program in tasks labels bpf; do
	cc -static -O2 -pthread -o "$SCRATCH/$program" "../quiet/$program.c" || exit 1
done
cc -static -O2 -o "$SCRATCH/victim" ../../attacks/reported/victim.c || exit 1
cc -static -pthread -O1 -Wall -o "$SCRATCH/target" ../../attacks/module/target.c || exit 1
# The emulator and the watchdogs as for monitor/quiet-long.
kyozon-lab run --kyozon --smp 2 --kernel "$1" --accel tcg,thread=single --timeout $((3 * $4 + 900)) \
	--append "watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=200 KYOZON_ISOLATION=$2" \
	$(printf -- "--module %s " dummy veth tun overlay nf_conntrack nf_tables bridge loop) \
	$(printf -- "--put $SCRATCH/%s:/bin/%s " tasks tasks labels labels bpf bpf victim victim target target) \
	--put "$module:/m/kyozon-attacks.ko" --put "../../attacks/found/cases/$3.sh:/case.sh" \
	--put "../../colocation/lib.sh:/lib.sh" --put "../quiet/quiet.sh:/quiet.sh" --put "after.sh:/after.sh" \
	"sh /after.sh $4"
