# The ticks are stopped and started again, with the key that kyozon.ko keeps: status and events show it.
control=survived
attempt() {
	ticks_first=$(field ticks)
	root vmmcall stop leaked
	paused=$(field state)
	sleep 0.2
	root vmmcall start leaked
	ticks_last=$(field ticks)
	kyozon events >/tmp/pause
}
is_shown() {
	[ $paused = stopped ] && [ $ticks_last -ge $ticks_first ] && grep -q 'wall: ticks stopped from CPU' /tmp/pause
}
works() { [ $mode != none ] && ! is_shown; }
wall=reported report='wall: ticks started again from CPU [0-9]+, task'
