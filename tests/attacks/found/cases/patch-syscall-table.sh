# The entry of a system call leads to another one's function.
attack="patch-rodata sys_call_table 102 __x64_sys_getpid"
text="read-only data changed: sys_call_table+0x330 at .*(__x64_sys_getuid), found .*(__x64_sys_getpid)"
is_back() { grep -q gone /proc/kyozon-attacks; }
