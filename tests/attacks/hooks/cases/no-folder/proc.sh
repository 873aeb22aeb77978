# The listing of /proc passes the module.
attack="hook-proc"
found="hidden operations:"
