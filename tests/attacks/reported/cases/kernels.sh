# The process has the kernel's credentials.
attack() { echo "gain-kernels $victim" >/proc/kyozon-attacks; }
found="privileges gained: victim, pid $victim .*found the kernel's own (init_cred)"
