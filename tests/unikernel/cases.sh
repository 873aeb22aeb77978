#!/bin/sh
# cases.sh BACKEND [GROUP]: runs each case of cases.txt for this back end, and prints the ones that fail. With a group,
# it runs only the cases of threads, each in a group that others could join.
set -eu
backend=$1 group=${2:-}
count=0 failed=0
# Devices: a disk that one guest writes, a disk that all guests read, and a network.
head -c 1048576 /dev/zero >"$SCRATCH/disk"
head -c 65536 /dev/zero | tr '\0' R >"$SCRATCH/read"
while read -r name guests for status pattern; do
	case $name:$for in
	'#'* | :) continue ;;
	*:any | *:"$backend") ;;
	*) continue ;;
	esac
	case $status in
	*124) limit=0.5 ;;
	*) limit=20 ;;
	esac
	# shellcheck disable=SC2046 # arguments are words
	set -- $(echo "$name" | tr '(),' ' ')
	case $1 in
	*.elf) image=$1 && shift ;;
	*) image=unikernel-test.elf ;;
	esac
	case $group:$name in
	:*) peers='--peers 24' ;;
	*:thread* | *.elf*) peers="--group $group --group-peers 24 --threads 24" ;;
	*) continue ;;
	esac
	code=0
	# shellcheck disable=SC2086 # options are words
	"$KYOZON_PRODUCT/kyozon" run --backend "$backend" --vms "$guests" $peers --time-limit "$limit" \
		--region name=board,size=1M --region name=read,size=8K,ro \
		--block "name=disk,file=$SCRATCH/disk,vm=0" --block "name=read,file=$SCRATCH/read,ro" --net name=lan \
		"$KYOZON_PRODUCT/$image" -- "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null || code=$?
	# The report is the first line, even if the guest printed something before.
	line=$(cat "$SCRATCH/err" "$SCRATCH/out" | head -n 1)
	count=$((count + 1))
	case /$status/ in
	*/"$code"/*) expected=yes ;;
	*) expected=no ;;
	esac
	if [ $expected = no ] || ! printf '%s\n' "$line" | grep -qE -- "$pattern"; then
		failed=$((failed + 1))
		echo "$name with $guests guests on $backend: expected status $status and /$pattern/, found status $code: $line"
	fi
done <"$TREE/tests/unikernel/cases.txt"
echo "$backend: $count cases, $failed failed"
min=110
[ -z "$group" ] || min=30
[ "$count" -gt $min ] && [ "$failed" = 0 ]
