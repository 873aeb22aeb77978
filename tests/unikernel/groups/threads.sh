#!/bin/sh
# threads.sh BACKEND: guests with threads in a group of several commands, which end in different orders and ways.
set -u
backend=$1 image=$KYOZON_PRODUCT/unikernel-test.elf

# Call this in a subshell or in the background: it replaces that process.
run() {
	of 64 "$@"
}
# of THREADS ...: the same, with this maximum of threads.
of() {
	threads=$1 && shift
	exec kyozon run --backend "$backend" --time-limit 60 --group g --threads "$threads" --region name=board,size=1M "$@"
}
# peers N: waits until N peers of the group run.
peers() {
	for _ in $(seq 500); do
		[ "$(kyozon ps | grep -c '^g .*running')" = "$1" ] && return
		sleep 0.02
	done
	echo "expected $1 peers: $(kyozon ps)"
}
# printed FILE PATTERN: waits until a command has printed a line that matches.
printed() {
	for _ in $(seq 500); do
		grep -qs "$2" "$SCRATCH/$1" && return
		sleep 0.02
	done
	echo "$1 did not print $2"
}
# held N: a thread of one command holds a lock, and another command waits for it. Their output goes to hold-N and
# lock-N.
held() {
	run "$image" -- crowd-hold >"$SCRATCH/hold-$1" &
	hold=$!
	printed "hold-$1" 'holds it'
	run "$image" -- lock >"$SCRATCH/lock-$1" &
	lock=$!
	printed "lock-$1" 'another peer holds it'
}
numbers() {
	kyozon ps | awk 'NR > 1 { printf "%s:%s:%s ", $2, $5, $NF } END { print "" }'
}

echo '== threads are listed, and killed'
run --group-peers 4 "$image" -- crowd &
crowd=$!
peers 4
numbers
(run "$image" -- thread) 2>&1
kyozon kill g/2 && peers 3
numbers
(run "$image" -- status 0)
kyozon kill g && wait $crowd
echo "crowd: $?"

echo '== a command is killed: its threads leave room'
run --group-peers 6 "$image" -- crowd-room >"$SCRATCH/room" &
room=$!
peers 1
run "$image" -- crowd &
crowd=$!
printed room none
numbers
kill -9 $crowd
wait $room
cat "$SCRATCH/room"

echo '== a command is killed whose thread holds a lock'
held 1
kill -9 $hold
wait $lock
cat "$SCRATCH/lock-1"

echo '== a thread is killed that holds a lock'
held 2
kyozon kill g/1
wait $lock
cat "$SCRATCH/lock-2"
wait $hold
echo "hold: $?"
cat "$SCRATCH/hold-2"

echo '== a thread of a scope is killed: the thread that lent it memory ends, too'
run "$image" -- thread-endless &
scope=$!
peers 3
kyozon kill g/1
wait $scope
echo "scope: $?"

echo '== a storm of three commands'
storms=
for _ in 1 2 3; do
	run --group-peers 9 "$image" -- crowd-storm 3 100 &
	storms="$storms $!"
done
for storm in $storms; do
	wait "$storm" || echo "storm: $?"
done

echo '== a family leaves room for others'
kyozon run --backend "$backend" --time-limit 60 --group g --region name=board,size=1M --group-peers 6 \
	"$image" -- crowd &
crowd=$!
peers 3
(run "$KYOZON_PRODUCT/hello.elf") | sed 's/peer [345] of [456]/a free peer/'
kyozon kill g && wait $crowd

echo '== memory: threads are in that of their guest'
of 3 --group-memory 65M "$image" -- crowd &
crowd=$!
peers 3
(run "$image" -- status 0) 2>&1
kyozon kill g && wait $crowd

echo '== the keeper is killed'
run --group-peers 5 "$image" -- crowd &
crowd=$!
peers 5
kill -9 "$(kyozon ps --json | sed 's/.*"keeper":\([0-9]*\).*/\1/')"
wait $crowd
echo "crowd: $?"
(run "$KYOZON_PRODUCT/hello.elf")
ls -A "$SCRATCH/run"
