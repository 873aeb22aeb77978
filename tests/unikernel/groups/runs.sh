#!/bin/sh
# runs.sh BACKEND: cases of several guests, each guest by a command of its own, which meet in a group.
# A line: case, guests, statuses in the order in which they join, and what one of them prints.
set -u
backend=$1
image=$KYOZON_PRODUCT/unikernel-test.elf
bad=0 count=0

# in_order N GROUP: waits until so many peers are there.
in_order() {
	for _ in $(seq 200); do
		[ "$(kyozon ps | grep -c "^$2 ")" = "$1" ] && return
		sleep 0.02
	done
	echo "$2: not $1 peers"
	bad=$((bad + 1))
}

while read -r for case guests want pattern; do
	case $for in "$backend" | any) ;; *) continue ;; esac
	group=g-$case-$$ processes='' got='' at=0
	: >"$SCRATCH/out"
	while [ "$at" -lt "$guests" ]; do
		kyozon run --backend "$backend" --time-limit 30 --group "$group" --region name=board,size=1M "$image" \
			-- "$case" "$guests" >>"$SCRATCH/out" 2>&1 &
		processes="$processes $!" at=$((at + 1))
		# The last may be over at once.
		[ "$at" = "$guests" ] || in_order "$at" "$group"
	done
	for process in $processes; do
		code=0
		wait "$process" || code=$?
		got=$got${got:+,}$code
	done
	count=$((count + 1))
	if [ "$got" != "$want" ] || ! grep -qE -- "$pattern" "$SCRATCH/out"; then
		bad=$((bad + 1))
		echo "$case with $guests on $backend: statuses $got instead of $want, or not /$pattern/: $(cat "$SCRATCH/out")"
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
echo "$backend: $count cases, $bad not as they should be"
[ "$count" -gt 4 ] && [ "$bad" = 0 ] && [ -z "$left" ]
