# A container's root has the kernel start a program of the container as the machine's root.
attack() {
	mkdir -p /tmp/groups
	mount -t cgroup -o none,name=escape groups /tmp/groups && sleep 1 &&
		echo /run/container/cmd >/tmp/groups/release_agent
	# It takes that back before the end.
	{ sleep 6; echo /usr/bin/true >/tmp/groups/release_agent; } </dev/null >/dev/null 2>&1 &
}
found="kernel's program redirected: release_agent .*expected one of the system's, found /run/container/cmd"
