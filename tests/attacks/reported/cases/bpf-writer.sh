# A BPF program can write to the memory of every process that makes a system call, as those do that hide files from ls.
attack() {
	/m/bpf writer sys_exit 4000 &
}
found="sensitive BPF program: bpf_prog_[0-9a-f_]*, ID [0-9]* .*a call of bpf_probe_write_user"
