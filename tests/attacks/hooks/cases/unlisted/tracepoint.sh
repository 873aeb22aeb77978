# A probe sees every system call, and the static calls of the tracepoint lead to it.
attack="hook-tracepoint"
found="hidden tracepoint probe: __tracepoint_sys_enter
kernel text changed: __SCT__tp_func_sys_enter // in no listed module
kernel text changed: syscall_trace_enter // in no listed module"
