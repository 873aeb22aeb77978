. /lib.sh
insmod /m/kyozon-attacks.ko 2>/dev/null

# load_monitor PARAMETER: loads the monitor with one of its faults.
load_monitor() {
	kyozon load --hz 1000 --budget 10000 --report-only --parameter $1 >/dev/null
}

# wait_for_status PATTERN: waits until a line of the status matches, at most two minutes or so.
wait_for_status() {
	for turn in $(seq 500); do
		kyozon status | grep -q "$1" && return
		sleep 0.2
	done
	kyozon status >&2
	kyozon events >&2
	return 1
}

# survives PARAMETER: the monitor's fault comes after a finding; shows what is left of the finding.
survives() {
	load_monitor $1 && wait_for_status '^monitor  watching' || return 1
	echo patch-text >/proc/kyozon-attacks
	wait_for_line 'FINDING kernel text changed' && echo found || return 1
	wait_for_status '^monitor  watching.*started again 1 times' && echo "started again" || return 1
	kyozon status >/dev/null || return 1
	kyozon events | grep -o 'open before the restart.*'
	kyozon status | grep -o '[0-9]* open' | grep -v '^0'
	echo undo >/proc/kyozon-attacks
	kyozon unload
}
