# Lockdown, which root has switched on, is off.
attack() {
	mount -t securityfs none /sys/kernel/security &&
		echo integrity >/sys/kernel/security/lockdown && sleep 1 &&
		echo "lift-protection kernel_locked_down" >/proc/kyozon-attacks
}
found="protection lifted: kernel_locked_down .*expected [1-9][0-9]*, found 0"
