# As an exploit ends: the process executes another program, which has no set-user-ID bit, right after that.
attack() { echo "gain-root $victim" >/proc/kyozon-attacks && touch /tmp/go; }
found="privileges gained: busybox, pid $victim .*expected user 1000 without .*found user 0, capabilities 0x"
