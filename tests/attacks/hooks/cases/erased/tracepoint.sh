# A probe sees every new process.
attack="hook-tracepoint sched_process_fork"
found="hidden tracepoint probe: __tracepoint_sched_process_fork
kernel text changed: __SCT__tp_func_sched_process_fork // in no listed module
kernel text changed: kernel_clone // in no listed module"
