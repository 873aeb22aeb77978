# Delayed work queues itself again and again.
attack="hook-work"
found="hidden timer:"
