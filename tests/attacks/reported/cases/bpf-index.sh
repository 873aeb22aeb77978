# A BPF program is not in the index by which user space finds programs.
attack() {
	/m/bpf tracepoint sched_switch 8000 &
	sleep 1
	echo "hide-bpf index" >/proc/kyozon-attacks
}
found="hidden BPF program: bpf_prog_[0-9a-f_]*, ID [0-9]* .*expected in the index of IDs, found only"
