#!/bin/sh
# unread.sh BACKEND: nobody reads standard output or standard error, and both are full. A time limit, SIGTERM and
# `kyozon kill` still end guests, and the other guests go on. Prints one line for each case: its exit status, and
# whether the end came in time.
set -u
backend=$1 image=$KYOZON_PRODUCT/unikernel-test.elf
mkfifo "$SCRATCH/full-$backend"
exec 3<>"$SCRATCH/full-$backend"
dd if=/dev/zero of="$SCRATCH/full-$backend" bs=4096 oflag=nonblock 2>/dev/null

run() {
	exec timeout -s KILL 10 kyozon run --backend "$backend" "$@"
}
# ended NAME STATUS: waits for the last background process, which must end within 2 seconds from $began on.
ended() {
	code=0
	wait $! || code=$?
	late=$((($(date +%s%N) - began) / 1000000))
	[ "$late" -lt 2000 ] && late='in time' || late="late: $late ms"
	echo "$1: $code, $late"
}
begin() {
	began=$(date +%s%N)
}

begin
run --time-limit 1 "$image" -- big-output >&3 2>/dev/null &
ended 'time limit, console'
begin
run --time-limit 1 --json "$image" -- panic >&3 2>&3 &
ended 'time limit, report'
run "$image" -- big-output >&3 2>&3 &
sleep 0.7
begin
kill -TERM "$(cat "/proc/$!/task/$!/children")"
ended 'SIGTERM'
begin
run --time-limit 3 --vms 3 --region name=board,size=1M "$image" -- death >"$SCRATCH/death-$backend" 2>&3 &
until grep -qs 'death: done' "$SCRATCH/death-$backend"; do
	[ $((($(date +%s%N) - began) / 1000000)) -lt 2000 ] || break
	sleep 0.05
done
cat "$SCRATCH/death-$backend"
wait $!
run --time-limit 9 --vms 2 --group full "$image" -- big-output >&3 2>&3 &
until [ "$(kyozon ps | grep -c '^full .*running')" = 2 ]; do sleep 0.05; done
sleep 0.2
begin
timeout 5 kyozon kill full/1
kyozon ps | awk '{ print $1, $2 }'
timeout 5 kyozon kill full
ended 'killed'
