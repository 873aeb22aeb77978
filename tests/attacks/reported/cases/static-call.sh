# The record of a static call leads elsewhere than the code: what the record says must not be written into the code.
attack() {
	mount -t tracefs none /sys/kernel/tracing 2>/dev/null
	echo 1 >/sys/kernel/tracing/events/raw_syscalls/sys_enter/enable && sleep 1 &&
		echo "redirect-call tp_func_sys_enter no_action" >/proc/kyozon-attacks
}
found="kernel text changed: __SCT__tp_func_sys_enter.*"
held="kernel text changed: __SCT__tp_func_sys_enter.*: not repaired: "
