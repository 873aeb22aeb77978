# Directory listings pass a handler of ftrace.
attack="hook-ftrace __x64_sys_getdents64"
found="hidden ftrace handler:"
