# A live patch hides every socket of TCP.
attack() {
	insmod /m/patched.ko function=tcp4_seq_show && [ -z "$(cat /proc/net/tcp)" ]
}
undo() {
	echo 0 >/sys/kernel/livepatch/patched/enabled
	for turn in $(seq 40); do
		[ -e /sys/kernel/livepatch/patched ] || break
		sleep 0.5
	done
	rmmod patched
}
found="sensitive function hooked: tcp4_seq_show[^ ]* .*by live patch, .*leads to module patched"
