#!/bin/sh
# Runs every kind of program in kernel mode: each name with its exit status, and what must be true beside a busy one.
run() {
	kyozon typed run --kernel "/m/typed/programs/$1.typed"
	echo "$1 $?"
}
for name in hello errors deep table pages exit guard far divide trap; do run $name; done 2>/dev/null
for name in clear sums pages guard align; do run vector-$name; done 2>/dev/null

kyozon typed run --kernel /m/typed/programs/loop.typed &
loop=$!
kyozon typed run --kernel /m/typed/programs/count.typed &
count=$!
for n in 1 2 3; do
	sleep 0.05
	kill -STOP $count
	sleep 0.1
	kill -CONT $count
done
wait $count
echo "count $?"

# A dynamic trampoline is given back after a grace period of RCU's tasks, which the busy program must not delay.
mount -t tracefs none /sys/kernel/tracing
mkdir /sys/kernel/tracing/instances/one
echo function >/sys/kernel/tracing/instances/one/current_tracer
echo nop >/sys/kernel/tracing/instances/one/current_tracer
rmdir /sys/kernel/tracing/instances/one && echo "grace period"

kill -9 $loop
wait $loop
echo "loop $?"
rmmod kyozon-typed && echo "removed"
