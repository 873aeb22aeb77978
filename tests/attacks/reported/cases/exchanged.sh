# The credentials of user 0 in the place of the process's own.
attack() { echo "gain-root $victim" >/proc/kyozon-attacks; }
found="privileges gained: victim, pid $victim .*expected user 1000 without .*found user 0, capabilities 0x"
