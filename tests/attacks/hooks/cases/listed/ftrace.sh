# A listed module filters directory listings. Its filter has thousands of other functions.
attack="hook-ftrace __x64_sys_getdents64 a* s*"
found="sensitive function hooked: __x64_sys_getdents64 // leads to module kyozon_attacks"
