# run.sh KERNEL OTHER: inspects the memory of a guest without tampering, that of one with, and files that are none. The
# second kernel's image is the wrong one.
image() {
	set -- "$(kyozon-lab fetch --kernel "$1" | sed 's/.* in //')"/boot/vmlinuz-*
	echo "$1"
}
kernel=$1
right=$(image "$1") wrong=$(image "$2")
module=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks") || exit 1
dump=$SCRATCH/dump
# The files of the kernel's modules, and of the one that is built here.
files=$SCRATCH/modules-$kernel
mkdir "$files" && ln -s "$module" "$files" || exit 1
find "${right%/boot/*}/lib/modules" -name '*.ko*' -exec ln -s -t "$files" {} +

# run SCRIPT: runs it in a guest, and leaves the guest's memory. Several threads may run breakpoints that Linux has
# removed: docs/emulators.md.
run() {
	rm -f "$dump"
	kyozon-lab run --kernel "$kernel" --smp 2 --accel tcg,thread=single --put "$module:/m/kyozon-attacks.ko" \
		--module kvm_amd --module nf_tables --module veth --dump "$dump" --timeout 120 "$1" || exit 1
}

# inspect OPTION...: prints the result and the exit status.
inspect() {
	kyozon inspect "$@" 2>&1
	echo "status $?"
}

run 'insmod /m/kyozon-attacks.ko; sleep 1'
inspect --image "$dump" --kernel-image "$right" --modules "$files"
inspect modules --image "$dump" --kernel-image "$right" --modules "$files" |
	grep -E '^(kyozon_attacks|kvm_amd|veth) |verdict|status'

# The same as plain memory: without the headers, and without what the machine has at its end beside memory.
number() {
	od -A n -t u8 -j "$1" -N 8 "$dump" | tr -d ' '
}
# The headers have 56 bytes each. The second one is that of the first range: its place in the file is at byte 8.
start=$(number $(($(number 32) + 56 + 8)))
tail -c +$((start + 1)) "$dump" | head -c 512M >"$SCRATCH/plain"
inspect --image "$SCRATCH/plain" --kernel-image "$right" --modules "$files" | grep -E 'plain|verdict|status'
inspect --image "$SCRATCH/plain" --kernel-image "$right" | grep -E 'module-text|verdict|status'

run 'insmod /m/kyozon-attacks.ko
sleep 1000 & pid=$!
for attack in "hide-list-pid $pid" patch-text patch-rodata hook-netfilter hook-timer exec-memory \
	"redirect-program modprobe_path /tmp/x" "patch-module veth_xmit+4" hide-module; do
	echo "$attack" >/proc/kyozon-attacks || exit 1
done'
inspect --image "$dump" --kernel-image "$right" --modules "$files"
inspect memory --image "$dump" --kernel-image "$right" | grep -E 'veth|nobody|verdict|status'
kyozon inspect --image "$dump" --json | grep -o '"class": "[a-z.-]*"' | sort | uniq -c

echo "while Linux patches itself"
run 'insmod /m/kyozon-attacks.ko; mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
tracer=/sys/kernel/tracing/current_tracer
(while :; do echo function >$tracer; echo nop >$tracer; done) & sleep 2'
inspect --image "$dump" --kernel-image "$right" | grep -E 'FINDING| text:|verdict|status'

echo errors
head -c 500M "$dump" >"$SCRATCH/plain"
inspect --image "$SCRATCH/plain"
inspect --image "$dump" --kernel-image "$wrong"
for size in 0 100 8192; do
	truncate -s 0 "$dump" && truncate -s $size "$dump"
	inspect --image "$dump"
done
inspect --image "$TREE/README.md"
inspect --image "$(command -v sh)"
printf 'KDUMP   ' >"$dump"
inspect --image "$dump"
inspect --image /nonexistent
