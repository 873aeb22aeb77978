# run.sh KERNEL ISOLATION: runs disarm.sh in a guest.
module=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks") || exit 1
patched=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks/patched") || exit 1
kernel=$1 isolation=$2
set --
for file in cases/*/*; do
	set -- "$@" --put "$file:/$file"
done
kyozon-lab run --deterministic --kyozon --kernel "$kernel" --timeout 800 \
	--put "$module:/m/kyozon-attacks.ko" --put "$patched:/m/patched.ko" "$@" "isolation=$isolation
$(cat disarm.sh)"
