# run.sh KERNEL: runs transient.sh in a guest.
module=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks") || exit 1
kyozon-lab run --deterministic --kyozon --kernel "$1" --timeout 300 --put "$module:/m/kyozon-attacks.ko" \
	"$(cat transient.sh)"
