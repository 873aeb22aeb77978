# A BPF program returns 0 at once.
attack() {
	/m/bpf tracepoint sched_switch 8000 &
	sleep 2
	echo patch-bpf >/proc/kyozon-attacks
}
found="BPF program changed: bpf_prog_[0-9a-f_]*+0x0, ID [0-9]* .*, found 31 c0 c3"
