# The process's own credentials are written.
attack() { echo "gain-written $victim" >/proc/kyozon-attacks; }
found="privileges gained: victim, pid $victim .*expected user 1000 without .*found user 0, capabilities 0x"
