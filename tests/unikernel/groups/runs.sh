#!/bin/sh
# runs.sh BACKEND: runs cases of several guests, each guest by a command of its own, in one group. Each line of the list
# is: back end, case, guests, statuses in the order of joining, and a pattern for a line that one of them prints.
set -u
backend=$1
image=$KYOZON_PRODUCT/unikernel-test.elf
failed=0 count=0

# wait_peers N GROUP: waits until the group has N peers.
wait_peers() {
	for _ in $(seq 200); do
		[ "$(kyozon ps | grep -c "^$2 ")" = "$1" ] && return
		sleep 0.02
	done
	echo "$2: expected $1 peers"
	failed=$((failed + 1))
}

while read -r for case guests want pattern; do
	case $for in "$backend" | any) ;; *) continue ;; esac
	group=g-$case-$$ processes='' got='' started=0
	: >"$SCRATCH/out"
	while [ "$started" -lt "$guests" ]; do
		kyozon run --backend "$backend" --time-limit 30 --group "$group" --region name=board,size=1M "$image" \
			-- "$case" "$guests" >>"$SCRATCH/out" 2>&1 &
		processes="$processes $!" started=$((started + 1))
		# The last guest may end at once.
		[ "$started" = "$guests" ] || wait_peers "$started" "$group"
	done
	for process in $processes; do
		code=0
		wait "$process" || code=$?
		got=$got${got:+,}$code
	done
	count=$((count + 1))
	if [ "$got" != "$want" ] || ! grep -qE -- "$pattern" "$SCRATCH/out"; then
		failed=$((failed + 1))
		echo "$case with $guests guests on $backend: expected $want and /$pattern/, found $got: $(cat "$SCRATCH/out")"
	fi
done <<'END'
any     ping-pong 2  0,0      ^ping-pong: done$
any     ping-pong 5  0,0,0,0,0 ^ping-pong: done$
any     leave     2  0,0      ^leave: done$
any     death     3  0,0,120  ^death: done$
any     regions   2  0,0      ^regions: done$
kvm     revoked   2  0,120    ^kyozon: guest 1 crashed: page fault: (read|write to) 0x600
kvm     crowd-revoked 2 0,120 ^kyozon: guest [12] crashed: page fault: (read|write to) 0x600
END
left=$(ls "$SCRATCH/run/kyozon" 2>/dev/null)
[ -z "$left" ] || echo "left: $left"
echo "$backend: $count cases, $failed failed"
[ "$count" -gt 4 ] && [ "$failed" = 0 ] && [ -z "$left" ]
