# The operations are what they were at the first look.
attack="hook-seq"
does="cat /proc/net/tcp"
hook="operations at .*: /proc/net/tcp"
