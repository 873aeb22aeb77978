attack="hook-work"
hook="timer at .*: Linux knows the work"
