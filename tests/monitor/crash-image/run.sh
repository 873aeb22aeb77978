# run.sh KERNEL ISOLATION: watches crash.sh in a guest. The crash kernel never starts here, so any initial file system
# will do.
kernel=$(echo "$(kyozon-lab fetch --kernel "$1" | sed 's/.* in //')"/boot/vmlinuz-*)
module=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks") || exit 1
cc -static -O1 -Wall -o "$SCRATCH/kexec_unload" kexec_unload.c || exit 1
head -c 1000000 /dev/zero >"$SCRATCH/initrd"
kyozon-lab run --deterministic --kyozon --kernel "$1" --mem 768 --append crashkernel=192M --timeout 900 \
	--put "$module:/m/kyozon-attacks.ko" --put "$kernel:/boot/vmlinuz" --put "$SCRATCH/initrd:/boot/initrd" \
	--put "$SCRATCH/kexec_unload:/bin/kexec_unload" --put "crash.sh:/crash.sh" "sh /crash.sh $2"
