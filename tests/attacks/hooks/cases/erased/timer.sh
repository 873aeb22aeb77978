# A timer of high resolution runs code of the module.
attack="hook-timer high"
found="hidden high-resolution timer:"
