# A listed module filters directory listings. Its filter has more than a thousand other functions.
attack="hook-ftrace __x64_sys_getdents64 h* j* q* z*"
found="sensitive function hooked: __x64_sys_getdents64 // leads to module kyozon_attacks"
