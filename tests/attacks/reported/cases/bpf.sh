# Ordinary users may load BPF programs again, although root had forbidden it until the next boot.
attack() {
	echo 1 >/proc/sys/kernel/unprivileged_bpf_disabled && sleep 1 &&
		echo "lift-protection sysctl_unprivileged_bpf_disabled" >/proc/kyozon-attacks
}
found="protection lifted: sysctl_unprivileged_bpf_disabled .*expected 1, found 0"
