attacks=/proc/kyozon-attacks

# watch CLASS=ACTION...: loads the monitor, which does ACTION about CLASS and allows the attacks' module to hook what it
# likes, and waits until it watches.
watch() {
	insmod /m/kyozon-attacks.ko 2>/dev/null
	for rule; do
		echo "\"${rule%=*}\" = \"${rule#*=}\""
	done >/tmp/policy
	echo 'allow-sensitive-hooks = ["kyozon_attacks"]' >>/tmp/policy
	kyozon load --policy /tmp/policy --serial 0x3e8 >/dev/null || exit 1
	for turn in $(seq 60); do
		kyozon events | grep -q 'monitoring Linux' && return
		sleep 1
	done
	exit 1
}

# attack: changes the kernel's text. Prints whether that was found.
attack() {
	echo patch-text >$attacks || exit 1
	for turn in $(seq 10); do
		kyozon events | grep -q FINDING && echo found && return
		sleep 0.5
	done
	echo not found
}

# passes: prints the number of complete passes of the check tasks.
passes() {
	kyozon status | sed -n 's/^check *tasks: \([0-9]*\) passes.*/\1/p'
}

# seen PID UID: waits until the process is UID's, and then until three more passes have seen that.
seen() {
	until grep -q "^Uid:[[:space:]]*$2[[:space:]]" "/proc/$1/status"; do sleep 0.1; done
	until=$(($(passes) + 3))
	until [ "$(passes)" -ge $until ]; do sleep 0.1; done
}

# ended PID: prints how the process ended, and what the monitor did about it.
ended() {
	wait "$1"
	echo "status $?"
	# What remains of a task whose memory is not reused is looked at for ten seconds.
	for turn in $(seq 20); do
		kyozon events | grep -q "pid $1: gone" && break
		sleep 1
	done
	kyozon events | sed -n "s/, pid $1:/:/p" | grep -E ' REPAIR | gone' | sed 's/^[^ ]* *//'
}
