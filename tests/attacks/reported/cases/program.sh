# Root chooses other programs of the system, which is no finding. Then the kernel starts anybody's as root.
attack() {
	echo "|/usr/lib/systemd/systemd-coredump %P" >/proc/sys/kernel/core_pattern && sleep 1 &&
		echo "redirect-program modprobe_path /tmp/x" >/proc/kyozon-attacks
}
found="kernel's program redirected: modprobe_path .*expected /sbin/modprobe, found /tmp/x"
