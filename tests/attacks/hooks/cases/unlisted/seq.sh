# The lines of /proc/net/tcp pass the module.
attack="hook-seq"
found="hidden operations:"
