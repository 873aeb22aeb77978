#!/bin/sh
# idle.sh N [BACKEND]: starts N sleeping guests, each by a command of its own, 50 in a group. Prints the time and memory
# that they cost, kills them, and checks that nothing is left.
set -u
count=$1 backend=${2:-kvm} each=50
image=$KYOZON_PRODUCT/unikernel-test.elf
run=$SCRATCH/run/kyozon

seconds() {
	cut -d ' ' -f 1 /proc/uptime
}
available() {
	sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo
}
# From the list of peers: the number of running guests, the maximum and the sum of their resident bytes.
rows() {
	kyozon ps --json | sed 's/"resident":/\n&/g' | sed -n 's/^"resident":\([0-9]*\),"state":"running".*/\1/p' |
		awk '{ n++; sum += $1; if ($1 > max) max = $1 } END { print n + 0, max + 0, sum + 0 }'
}

before=$(available) began=$(seconds) guests=0
while [ "$guests" -lt "$count" ]; do
	kyozon run --backend "$backend" --memory 1M --group "idle-$((guests / each))" "$image" -- sleep-forever \
		</dev/null >"$SCRATCH/out-$guests" 2>&1 &
	guests=$((guests + 1))
done
for _ in $(seq 1000); do
	running=$(rows)
	[ "${running%% *}" = "$count" ] && break
	sleep 0.2
done
started=$(seconds) after=$(available)
# shellcheck disable=SC2086 # three numbers
set -- $running
[ "$1" = "$count" ] || { echo "$1 guests of $count run: $(cat "$SCRATCH"/out-* | sort | uniq -c | head -n 3)"; }
lines=$(kyozon ps | grep -c '^idle-')
group=0
while [ $((group * each)) -lt "$count" ]; do
	kyozon kill "idle-$group" || echo "idle-$group is not killed"
	group=$((group + 1))
done
wait
ended=$(seconds)
[ -e "$run" ] && ls -R "$run"
[ "$(kyozon ps | wc -l)" = 1 ] && [ "$lines" = "$count" ] && [ "$2" -le $((5 << 20)) ] || exit 1
awk "BEGIN { printf \"%d guests: started in %.1f s, resident at most %dK, %dK in the mean, %dK less memory each, \" \
	\"killed in %.1f s, nothing is left\\n\",
	$1, $started - $began, $2 / 1024, $3 / $1 / 1024, ($before - $after) / $1, $ended - $started }"
