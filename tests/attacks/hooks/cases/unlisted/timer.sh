# A timer runs code of the module.
attack="hook-timer"
found="hidden timer:"
