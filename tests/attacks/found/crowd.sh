# crowd.sh: many processes begin in a row while the monitor runs; then one of them is hidden.
. /lib.sh
kyozon load --isolation "$isolation" >/dev/null || exit 1
target run /tmp/target </dev/null >/dev/null 2>&1 &
for turn in $(seq 20); do
	for one in 1 2 3 4 5 6 7 8; do
		sleep 200 &
		crowd="$crowd $!"
	done
	sleep 0.1
done
read -r process thread _ </tmp/target
echo "hide-list $process" >/proc/kyozon-attacks || exit 1
for turn in 1 2 3; do
	wait_for_line "FINDING.*hidden process: target, pid $process" && echo "found in the crowd" && break
done
echo undo >/proc/kyozon-attacks
rm /tmp/target
kill $crowd
kyozon unload
