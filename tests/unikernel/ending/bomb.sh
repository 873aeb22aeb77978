#!/bin/sh
# bomb.sh BACKEND: a guest that takes as much memory as it gets, by threads, regions and its heap, gets no more than
# --memory, which is 64M by default. The sum counts what the tender and the guests' processes have resident.
set -u
kyozon run --backend "$1" --time-limit 30 "$KYOZON_PRODUCT/bomb-test.elf" >"$SCRATCH/bomb-$1" 2>&1 &
tender=$!
until grep -qs 'all taken' "$SCRATCH/bomb-$1" || ! kill -0 $tender 2>/dev/null; do sleep 0.05; done
sleep 0.3
sum=0
for process in $tender $(cat /proc/$tender/task/*/children); do
	sum=$((sum + $(awk '/^Pss:/ { print $2 }' "/proc/$process/smaps_rollup")))
done
kill -TERM $tender
wait $tender
grep -v 'all taken' "$SCRATCH/bomb-$1"
# The tender itself has some memory: its program, and stacks of its threads.
[ $sum -lt $(((64 + 12) * 1024)) ] && echo 'within --memory' || echo "$sum K resident"
