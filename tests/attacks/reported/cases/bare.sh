# A container's root, whose capabilities were taken away, gets all of them.
kind=bare
attack() { echo "gain-root $victim" >/proc/kyozon-attacks; }
found="privileges gained: victim, pid $victim .*expected user 0, as before, found user 0, capabilities 0x"
