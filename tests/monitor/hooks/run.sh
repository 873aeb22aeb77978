# run.sh KERNEL ISOLATION SECONDS: runs quiet.sh in a guest.
module=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks") || exit 1
for program in "$TREE/tests/monitor/quiet/bpf.c" busy.c; do
	cc -static -O2 -o "$SCRATCH/$(basename "$program" .c)" "$program" || exit 1
done
kyozon-lab run --deterministic --kyozon --mem 768 --kernel "$1" --timeout 1500 \
	$(printf -- "--module %s " dummy veth tun overlay nf_conntrack nf_tables bridge loop) \
	--put "$module:/m/kyozon-attacks.ko" --put "$SCRATCH/bpf:/bin/bpf" --put "$SCRATCH/busy:/bin/busy" \
	"isolation=$2 seconds=$3
$(cat quiet.sh)"
