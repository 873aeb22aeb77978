attack="hook-timer"
does="sleep 0.3"
hook="timer at "
