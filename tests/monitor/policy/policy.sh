attacks=/proc/kyozon-attacks

# watch ACTION: loads the monitor, which does ACTION about changed text, and waits until it watches.
watch() {
	insmod /m/kyozon-attacks.ko 2>/dev/null
	echo "\"kernel.text.modified\" = \"$1\"" >/tmp/policy
	# With a real-time clock, an emulator on a busy machine stalls for long: much budget, many ticks.
	kyozon load --hz 1000 --budget 10000 --policy /tmp/policy --serial 0x3e8 >/dev/null || exit 1
	for turn in $(seq 300); do
		kyozon events | grep -q 'monitoring Linux' && return
		sleep 0.1
	done
	exit 1
}

# attack: changes the kernel's text. Prints whether that was found.
attack() {
	echo patch-text >$attacks || exit 1
	for turn in $(seq 150); do
		kyozon events | grep -q FINDING && echo found && return
		sleep 0.1
	done
	echo not found
}
