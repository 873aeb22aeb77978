# run.sh KERNEL ISOLATION SECONDS [PAUSE]: makes ordinary changes for SECONDS of the guest's time. Prints that time, or
# what the monitor found. With PAUSE seconds between the changes, time is the emulator's, and the monitor has its
# defaults.
. ../quiet/guest.sh
guest "$1" "$2" $((3 * $3 + 600)) $([ -z "$4" ] || clock) --put "../quiet/watch.sh:/watch.sh" "
	[ -z '$4' ] || export PAUSE=$4 BUDGET=200
	began=\$(cut -d . -f 1 /proc/uptime)
	sh /watch.sh $3 >/tmp/out || { cat /tmp/out; exit 1; }
	# Each kind of change was made, and the monitor has looked meanwhile.
	grep '^rounds ' /tmp/out | sed 's/ unplugged.*//' | grep -vE ' 0( |\$)' &&
		grep -E 'meanwhile: tasks [1-9][0-9]* text [1-9]' /tmp/out || { cat /tmp/out; exit 1; }
	dmesg | grep -E 'BUG:|WARNING:|Oops:|detected stalls|corruption' && exit 1
	seconds=\$((\$(cut -d . -f 1 /proc/uptime) - began))
	[ \$seconds -ge $3 ] && echo seconds \$seconds"
