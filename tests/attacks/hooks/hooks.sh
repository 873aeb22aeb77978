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

# events: prints the kind and the text of each event after the first $mark.
events() {
	kyozon events | awk -v mark="$mark" 'NR > mark { $1 = ""; sub(/ /, ""); print }'
}

# compare missing|others FILE: a line of FILE, BEGIN or BEGIN // REST, fits those of the input that begin so and have
# the rest. Prints which lines of FILE are missing, fitting none, or which others the input has, that none fits.
compare() {
	awk -v show="$1" 'FILENAME != "-" {
		parts[$0] = split($0, part, " // ")
		begin[$0] = part[1]
		rest[$0] = part[2]
		next
	}
	{
		fits = 0
		for (line in parts)
			if (index($0, begin[line]) == 1 && (parts[line] == 1 || index($0, rest[line]))) {
				fits = 1
				fitted[line]
			}
		if (show == "others" && !fits)
			print
	}
	END {
		for (line in parts)
			if (show == "missing" && !(line in fitted))
				print line
	}' "$2" -
}

# wait_for FILE HUNDREDTHS: waits until an event matches each line of FILE. The lines that none matched are left there.
wait_for() {
	until=$(($(now) + $2))
	while :; do
		events | compare missing "$1" >/tmp/left
		mv /tmp/left "$1"
		[ -s "$1" ] && [ "$(now)" -lt $until ] || return 0
		sleep 0.5
	done
}

# wait_for_end HUNDREDTHS: waits until no finding is open. A later one of the same memory would have no line.
wait_for_end() {
	until=$(($(now) + $1))
	while kyozon status | grep -q ' open' && [ "$(now)" -lt $until ]; do
		sleep 0.5
	done
}

# tamper FILE: runs the attacks of FILE, one a line.
tamper() {
	while read -r attack; do
		echo "$attack" >/proc/kyozon-attacks || echo "$attack: failed"
	done <"$1"
}

# begins, gone: print how the events of $found begin, and of their end.
begins() {
	echo "$found" | sed 's|^|FINDING |'
}
gone() {
	echo "$found" | sed 's|^|note |; s| // .*||; s|$| // : gone|'
}

# among FILE: whether a line of the input is one of FILE.
among() {
	[ -s "$1" ] && grep -qxFf "$1"
}

mark=0
echo "note monitoring Linux" >/tmp/wanted
wait_for /tmp/wanted 6000
for group in /cases/*/; do
	mark=$(kyozon events | wc -l)
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
	events | grep '^FINDING ' | compare others /tmp/all >/tmp/others
	echo undo >/proc/kyozon-attacks
	wait_for_end 3000
	wait_for /tmp/still 0
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
