# run.sh KERNEL ISOLATION: runs reported.sh in a guest.
module=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks") || exit 1
patched=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks/patched") || exit 1
cc -static -O1 -Wall -o "$SCRATCH/victim" victim.c || exit 1
cc -static -O2 -o "$SCRATCH/bpf" "$TREE/tests/monitor/quiet/bpf.c" || exit 1
kernel=$1 isolation=$2
set --
for file in cases/* "cases-$kernel"/*; do
	[ ! -e "$file" ] || set -- "$@" --put "$file:/cases/${file##*/}"
done
kyozon-lab run --deterministic --kyozon --kernel "$kernel" --module veth --module dummy --timeout 400 \
	--put "$module:/m/kyozon-attacks.ko" --put "$patched:/m/patched.ko" \
	--put "$SCRATCH/victim:/m/victim" --put "$SCRATCH/bpf:/m/bpf" "$@" \
	"isolation=$isolation
$(cat reported.sh)"
