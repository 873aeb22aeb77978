# run.sh KERNEL ISOLATION: runs the scripts of this folder in a guest, with the monitor's defaults.
module=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks") || exit 1
cc -static -pthread -O1 -Wall -o "$SCRATCH/target" ../module/target.c || exit 1
kernel=$1 isolation=$2
set --
for file in *.sh cases/*; do
	set -- "$@" --put "$file:/$file"
done
kyozon-lab run --deterministic --kyozon --kernel "$kernel" --timeout 800 --put "$module:/m/kyozon-attacks.ko" \
	--put "$TREE/tests/colocation/lib.sh:/lib.sh" --put "$SCRATCH/target:/bin/target" "$@" "
export isolation=$isolation
insmod /m/kyozon-attacks.ko 2>/dev/null
for script in attacks 'attacks --report-only' hold twice crowd unlisted forged; do
	echo \"\$script:\"
	set -- \$script
	name=\$1
	shift
	sh /\$name.sh \"\$@\"
done"
