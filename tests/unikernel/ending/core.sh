#!/bin/sh
# core.sh BACKEND: a crashed guest with much memory writes a core file, which is sparse. A time limit ends that, too.
set -u
backend=$1 image=$KYOZON_PRODUCT/unikernel-test.elf core=$SCRATCH/core-$1

timeout -s KILL 60 kyozon run --backend "$backend" --memory 1G --core "$core" "$image" -- panic 2>"$SCRATCH/err"
echo "status $?: $(grep -c "core file: $core$" "$SCRATCH/err") core file"
[ "$(stat -c %s "$core")" -gt 900000000 ] && [ "$(stat -c %b "$core")" -lt 8192 ] && echo sparse
began=$(date +%s%N)
timeout -s KILL 60 kyozon run --backend "$backend" --memory 60G --time-limit 1 --core "$core" "$image" -- panic \
	2>/dev/null
late=$((($(date +%s%N) - began) / 1000000))
[ "$late" -lt 2500 ] && echo 'in time' || echo "late: $late ms"
rm "$core"
# A pipe is no place for a core file, and nobody waits for its reader.
mkfifo "$core"
timeout -s KILL 10 kyozon run --backend "$backend" --core "$core" "$image" -- panic 2>&1 | grep -o 'cannot write.*:'
