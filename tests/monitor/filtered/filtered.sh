. /lib.sh
insmod /m/kyozon-attacks.ko 2>/dev/null

# filter SYMBOL: leaves it out of /proc/kallsyms, and nothing else.
filter() {
	echo undo >/proc/kyozon-attacks
	echo "filter-symbol $1" >/proc/kyozon-attacks
}

# watch: loads the monitor, waits until it watches, and prints its findings.
watch() {
	kyozon load --hz 1000 --budget 10000 || return 1
	for turn in $(seq 600); do
		kyozon events | grep -q "monitoring Linux $(uname -r)" && break
		sleep 0.2
	done
	kyozon status | grep -q '^monitor  watching' || return 1
	sleep 1
	echo watching
	kyozon events | sed -n 's/.* FINDING //p'
}
