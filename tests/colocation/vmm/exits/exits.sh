# sh /exits.sh SECONDS: runs processes, files, hashes and pipes on every CPU, and prints the exits that they caused.
. /lib.sh

# exits FILE: writes each exit reason with its count.
exits() {
	kyozon status --json | sed -n '/"exits"/,/}/s/^ *"\([a-z_]*\)": \([0-9]*\),*$/\1 \2/p' >"$1"
}

work() {
	end=$(($(cut -d . -f 1 /proc/uptime) + $1))
	while [ $(cut -d . -f 1 /proc/uptime) -lt $end ]; do
		dd if=/dev/zero bs=64k count=8 2>/dev/null | sha256sum >/tmp/work.$2
		find /sys/kernel -maxdepth 2 | sort | tail -n 1 >/dev/null
		(true)
		cp /bin/busybox /tmp/copy.$2 && rm /tmp/copy.$2
	done
}

load --hz 100 >/dev/null || exit 1
wait_for_ticks && sleep 1
cpus=$(grep -c ^processor /proc/cpuinfo)
exits /tmp/before
for cpu in $(seq 0 $((cpus - 1))); do
	work $1 $cpu &
	taskset -p $((1 << cpu)) $! >/dev/null
done
wait
exits /tmp/after
# Reading the counts causes no exit: it takes system calls only.
ticks=$(($(sed -n 's/^tick //p' /tmp/after) - $(sed -n 's/^tick //p' /tmp/before)))
others=$(grep -v '^tick ' /tmp/before | diff - /tmp/after | sed -n 's/^> //p' | grep -v '^tick ')
echo "exits of $cpus CPUs in $1 s: tick $ticks, all others ${others:-0}"
kyozon unload >/dev/null
