# A probe of the result of kill.
attack="hook-kretprobe __x64_sys_kill"
found="hidden kprobe handler:"
