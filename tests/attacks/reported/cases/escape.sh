# A process in a user namespace of its own gets out of it.
kind=confined
attack() { echo "gain-root $victim" >/proc/kyozon-attacks; }
found="privileges gained: victim, pid $victim .*expected another user namespace.*found user 0"
