# The code of a BPF program is not in the list by which Linux names code.
attack() {
	/m/bpf tracepoint sched_switch 8000 &
	sleep 1
	echo "hide-bpf list" >/proc/kyozon-attacks
}
found="hidden BPF program: bpf_prog_[0-9a-f_]*, ID [0-9]* .*expected in the list of code, found only"
