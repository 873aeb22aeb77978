attack="hook-kretprobe __x64_sys_getuid"
does="id"
hook="kprobe handler at .*: __x64_sys_getuid"
