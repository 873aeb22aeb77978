# A kernel thread runs code of the module.
attack="hook-thread"
found="hidden kernel thread:"
