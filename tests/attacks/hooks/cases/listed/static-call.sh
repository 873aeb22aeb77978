# A handler is the trampoline of a static call, which is the kernel's, and leads to a listed module.
attack="hook-static-call __x64_sys_getpgid"
found="sensitive function hooked: __x64_sys_getpgid // leads to module kyozon_attacks"
