# The filter of the process's system calls is passed over.
attack() { echo "lift-filter $victim" >/proc/kyozon-attacks; }
found="system call filter lifted: victim, pid $victim .*expected the filter that it had, found none"
