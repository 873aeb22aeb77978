# A listed module filters directory listings.
attack="hook-ftrace __x64_sys_getdents64"
found="sensitive function hooked: __x64_sys_getdents64 // leads to module kyozon_attacks"
