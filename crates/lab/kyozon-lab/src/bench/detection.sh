# detection.sh: the functions of a round of table "detection".

# events: prints the sequence number, kind and class of each event that has a class.
events() {
	kyozon events --json |
		sed -n 's/.*"class":"\([^"]*\)",.*"kind":"\([a-z]*\)",.*"sequence":\([0-9]*\),.*/\3 \2 \1/p'
}

# begin SECONDS: begins a round after a rest.
begin() {
	dmesg -c >/dev/null
	sleep "$1"
}

# mark: what was found until now is known.
mark() {
	known=$(events | tail -n 1 | sed 's/ .*//')
}

# tamper SECONDS COMMAND...: writes a command to the attacks' file, and rests.
tamper() {
	rest=$1
	shift
	echo "$*" >/proc/kyozon-attacks || exit 1
	sleep "$rest"
}

# found CLASS...: waits until each class has a finding after those known, at most half a minute.
found() {
	for turn in $(seq 60); do
		events | awk -v mark="${known:--1}" '$1 > mark && $2 == "finding" { print $3 }' >/tmp/found
		missing=
		for class in "$@"; do
			grep -qx "$class" /tmp/found || missing=$class
		done
		[ "$missing" ] || return 0
		sleep 0.5
	done
}

# undo ATTACK...: undoes attacks, and rests for a second.
undo() {
	for attack in "$@"; do
		echo "undo $attack" >/proc/kyozon-attacks || exit 1
	done
	sleep 1
}

# end: waits until no finding is open, and prints the attacks and the events.
end() {
	for turn in $(seq 120); do
		open=$(kyozon status --json | sed -n 's/^ *"open": \([0-9]*\),*$/\1/p' | awk '{ all += $1 } END { print all + 0 }')
		[ "$open" != 0 ] || break
		sleep 0.5
	done
	[ "$open" = 0 ] || { kyozon status >&2; exit 1; }
	dmesg | grep -o 'kyozon-attacks: [a-z-]* done: .*'
	kyozon events --json
}
