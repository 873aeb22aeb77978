# The listing of a mounted file system passes the module.
attack="hook-directory /tmp"
found="hidden operations:"
