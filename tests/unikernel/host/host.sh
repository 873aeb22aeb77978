#!/bin/sh
# host.sh BACKEND: a host program in C and a guest share a ring and a lock in one group; either of them is killed.
set -u
backend=$1
cc -std=c11 -Wall -Wextra -Werror -I "$TREE/crates/unikernel/join/include" "$TREE/tests/unikernel/host/program.c" \
	"$KYOZON_PRODUCT/libkyozon_join.a" -o "$SCRATCH/program" || exit 1

# guest OPTIONS -- CASE: starts a guest, and waits until it runs.
guest() {
	kyozon run --backend "$backend" --time-limit 30 --group g "$@" &
	guest=$!
	until kyozon ps | grep -q '^g .*running'; do sleep 0.02; done
}
board=name=board,size=1M image=$KYOZON_PRODUCT/unikernel-test.elf

echo '== round trips'
guest --region $board "$image" -- echo
"$SCRATCH/program" g ask
wait $guest
echo '== the program is killed'
for after in 0.05 0.1 0.15; do
	guest --region $board "$image" -- echo
	"$SCRATCH/program" g ask-on >"$SCRATCH/printed" &
	program=$!
	until grep -q going "$SCRATCH/printed"; do sleep 0.02; done
	sleep $after
	kill -9 $program
	wait $guest
	echo "guest: $?"
done
echo '== the program is killed with a lock'
guest --region $board "$image" -- lock
"$SCRATCH/program" g lock >"$SCRATCH/printed" &
program=$!
until grep -q locked "$SCRATCH/printed"; do sleep 0.02; done
sleep 0.1
kill -9 $program
wait $guest
echo '== the tender is killed'
guest --region $board "$image" -- echo
"$SCRATCH/program" g ask-on &
program=$!
sleep 0.2
kill -9 $guest
wait $program
echo "program: $?"
echo '== the guest is killed'
guest --region $board "$image" -- sleep-forever
"$SCRATCH/program" g see-end &
program=$!
until kyozon ps | grep -q host; do sleep 0.02; done
kyozon kill g/0
wait $program
wait $guest
echo "guest: $?"
echo '== rights'
guest --region $board,ro "$image" -- read-only
"$SCRATCH/program" g read
"$SCRATCH/program" g nothing
"$SCRATCH/program" g write
wait $guest 2>/dev/null
echo "guest: $?"
echo '== no group'
"$SCRATCH/program" g read 2>&1
echo "program: $?"
guest "$image" -- sleep-forever
"$SCRATCH/program" g read 2>&1
echo '== kyozon kill ends a program'
"$SCRATCH/program" g nothing
"$SCRATCH/program" g stay 2>&1
kyozon kill g
wait $guest
guest --region $board "$image" -- sleep-forever
"$SCRATCH/program" g stay &
program=$!
until kyozon ps | grep -q host; do sleep 0.02; done
kyozon kill g
wait $program
echo "program: $?"
if [ "$backend" = kvm ]; then
	echo '== a region is revoked'
	guest --region $board "$image" -- lend
	"$SCRATCH/program" g borrow &
	program=$!
	wait $guest
	wait $program
	echo "program: $?"
fi
ls -A "$SCRATCH/run"
