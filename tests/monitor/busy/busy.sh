# busy.sh: prints how many seconds the monitor, with its defaults, takes to find a change of kernel text while every CPU
# is busy.
. /lib.sh
insmod /m/kyozon-attacks.ko || exit 1
for cpu in $(seq $(nproc)); do
	while :; do :; done &
	hogs="$hogs $!"
done
kyozon load >/dev/null || exit 1
now() { cut -d ' ' -f 1 /proc/uptime | tr -d .; }
begun=$(now)
while ! kyozon status | grep -q ' text: [1-9]'; do sleep 0.2; done
echo "first pass after $((($(now) - begun) / 100)) s" >&2
kyozon status >&2
begun=$(now)
echo patch-text >/proc/kyozon-attacks || exit 1
for turn in $(seq 400); do
	kyozon events | grep -q 'FINDING kernel text changed: .*sys_getuid' && found=1 && break
	sleep 0.2
done
took=$((($(now) - begun) / 100))
kill $hogs
kyozon status >&2
kyozon events >&2
[ "$found" ] || { echo "not found in $took s"; exit 1; }
echo "found after $took s" >&2
[ $took -le 10 ] && echo "found in time"
echo undo >/proc/kyozon-attacks
kyozon unload
