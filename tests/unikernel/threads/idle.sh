#!/bin/sh
# idle.sh BACKEND: 63 threads wait in every way that there is. Prints how often the tender and the guests' processes run
# in a second; each run of one of their threads ends with a switch of context.
set -eu
backend=$1
kyozon run --backend "$backend" --peers 64 --time-limit 60 "$KYOZON_PRODUCT/unikernel-test.elf" -- thread-idle \
	>"$SCRATCH/idle" &
tender=$!
for _ in $(seq 300); do
	grep -q 'threads wait' "$SCRATCH/idle" && break
	sleep 0.1
done
switches() {
	processes="$tender $(cat /proc/$tender/task/*/children)"
	for process in $processes; do
		cat "/proc/$process/task"/*/status
	done | awk '/ctxt_switches/ { sum += $2 } END { print sum }'
}
# Locks look for some milliseconds before they sleep.
sleep 1
before=$(switches)
sleep 1
after=$(switches)
cat "$SCRATCH/idle"
echo "$((after - before)) switches"
kill "$tender"
wait "$tender" || true
