# stress.sh [SWITCHES [SEED]]: 25,000 ticks or 2.5 minutes per CPU and cokernel, with the state compared around each
# tick. One cokernel stays in kernel mode and idles; the user code of the other is cut off at the end of every budget.
. /lib.sh
switches=${1:-50000}
seed=${2:-$(seed)}
echo "seed $seed"
work $seed &
worker=$!
for cpu in $(awk '/^processor/ { print $3 }' /proc/cpuinfo); do
	for cokernel in "--budget 10000 --parameter 0" "--budget 100 --parameter 3"; do
		insmod /lib/modules/$(uname -r)/extra/kyozon.ko check=1 || exit 1
		load --hz 2000 --cpu $cpu $cokernel || exit 1
		seconds=0
		while [ $(field ticks) -lt $((switches / 2)) ] && [ $seconds -lt 150 ]; do
			echo l >/proc/sysrq-trigger
			sleep 1
			seconds=$((seconds + 1))
		done
		echo "cpu $cpu $cokernel: switches $(field ticks) differences $(field differences)" \
			"state $(field state) after $seconds s"
		# A slow machine may stop at the time limit, but must have done a tenth.
		[ "$(field differences)" = 0 ] && [ "$(field state)" = running ] && [ $(field ticks) -ge $((switches / 10)) ] || {
			kyozon status --json | tr -d "\n" >&2
			exit 1
		}
		kyozon unload || exit 1
	done
done
kill $worker
