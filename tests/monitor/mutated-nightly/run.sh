# run.sh KERNEL: inspects the memory of a guest a thousand times, with other changes each time.
image=$(echo "$(kyozon-lab fetch --kernel "$1" | sed 's/.* in //')"/boot/vmlinuz-*)
kyozon-lab run --kernel "$1" --module kvm_amd --module veth --dump "$SCRATCH/dump" \
	--timeout 120 'sleep 1000 & sleep 1' || exit 1
cd "$TREE" && KYOZON_IMAGE=$SCRATCH/dump KYOZON_KERNEL_IMAGE=$image \
	KYOZON_MODULES=${image%/boot/*}/lib/modules KYOZON_MUTATIONS=1000 KYOZON_SEED=$(date +%s)000 \
	"${CARGO:-cargo}" test --locked --quiet --release -p kyozon --test mutated -- --ignored --nocapture && exit
mv "$SCRATCH/dump" "$KYOZON_CACHE/mutated.dump"
exit 1
