# Every packet of every device is looked at.
attack="hook-packet"
found="hidden packet handler:"
