# hooks.sh, with $isolation: loads the monitor with its defaults, runs the attacks of /cases, and prints their outcome.
#
# A case defines $attack, and $found: its findings, one a line, each WHAT or WHAT // REST. A finding's line begins with
# WHAT and has REST later; a note says that WHAT is gone after undo. The cases of a folder are there together, as in one
# piece of malware; the attacks of the folder's file "first" come before them, those of "last" after.
insmod /m/kyozon-attacks.ko 2>/dev/null
ip link set lo up
kyozon load --isolation "$isolation" >/dev/null || exit 1

# now: prints the guest's time in hundredths of a second.
now() {
	sed 's/\([0-9]*\)\.\([0-9]*\) .*/\1\2/' /proc/uptime
}

# events: prints the number, the kind and the text of each event after $mark.
events() {
	kyozon events --json | sed -n 's/.*"kind":"\([a-z]*\)",.*"sequence":\([0-9]*\),.*"text":"\(.*\)","tick".*/\2 \1 \3/p' |
		awk -v mark="$mark" '$1 > mark'
}

# wait_for FILE HUNDREDTHS: waits until an event matches each line of FILE. The lines that none matched are left there.
wait_for() {
	until=$(($(now) + $2))
	while :; do
		events >/tmp/events
		while read -r line; do
			grep -q "$line" /tmp/events || echo "$line"
		done <"$1" >/tmp/left
		mv /tmp/left "$1"
		[ -s "$1" ] && [ "$(now)" -lt $until ] || return 0
		sleep 0.5
	done
}

# tamper FILE: runs the attacks of FILE, one a line.
tamper() {
	while read -r attack; do
		echo "$attack" >/proc/kyozon-attacks || echo "$attack: failed"
	done <"$1"
}

# begins, gone: print the patterns of the events of $found.
begins() {
	echo "$found" | sed 's|^|^[0-9]* finding |; s| // |.*|'
}
gone() {
	echo "$found" | sed 's|^|^[0-9]* note |; s| // .*||; s|$|.*: gone|'
}

# among FILE: whether a line of the input is one of FILE.
among() {
	[ -s "$1" ] && grep -qxFf "$1"
}

mark=-1
echo "note monitoring Linux" >/tmp/wanted
wait_for /tmp/wanted 6000
for group in /cases/*/; do
	mark=$(kyozon events --json | sed -n 's/.*"sequence":\([0-9]*\),.*/\1/p' | tail -n 1)
	: >/tmp/wanted >/tmp/still >/tmp/attacks
	for case in "$group"*.sh; do
		. "$case"
		begins >>/tmp/wanted
		gone >>/tmp/still
		echo "$attack" >>/tmp/attacks
	done
	cp /tmp/wanted /tmp/all
	for file in "$group"first /tmp/attacks "$group"last; do
		[ ! -e "$file" ] || tamper "$file"
	done
	wait_for /tmp/wanted 1000
	# Findings that no case names.
	sleep 1
	events | grep '^[0-9]* finding ' >/tmp/others
	while read -r line; do
		grep -v "$line" /tmp/others >/tmp/left
		mv /tmp/left /tmp/others
	done </tmp/all
	echo undo >/proc/kyozon-attacks
	wait_for /tmp/still 3000
	name=$(basename "$group")
	for case in "$group"*.sh; do
		. "$case"
		outcome="found, gone after undo"
		! gone | among /tmp/still || outcome="found, not gone"
		! begins | among /tmp/wanted || outcome="not found"
		echo "case $name/$(basename "$case" .sh): $outcome"
	done
	sed "s|^|$name: no case names |" /tmp/others
	[ ! -s /tmp/wanted ] && [ ! -s /tmp/still ] && [ ! -s /tmp/others ] || events >&2
done
rmmod kyozon-attacks
kyozon unload
