# Loads with the state comparison on, works until 50,000 switches or 5 minutes, once on each CPU.
. /t.sh
switches=${1:-50000}
work &
worker=$!
for cpu in $(awk '/^processor/ { print $3 }' /proc/cpuinfo); do
	insmod /lib/modules/$(uname -r)/extra/kyozon.ko check=1 || exit 1
	load --hz 2000 --cpu $cpu || exit 1
	seconds=0
	while [ $(field ticks) -lt $((switches / $(nproc))) ] && [ $seconds -lt 150 ]; do
		echo l >/proc/sysrq-trigger
		sleep 1
		seconds=$((seconds + 1))
	done
	echo "cpu $cpu switches $(field ticks) differences $(field differences) state $(field state) after $seconds s"
	[ "$(field differences)" = 0 ] && [ "$(field state)" = running ] || exit 1
	kyozon unload || exit 1
done
kill $worker
