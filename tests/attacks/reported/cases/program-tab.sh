# Linux splits a core pattern at tabs, too.
attack() {
	printf '|/bin/sh\t/tmp/x' >/proc/sys/kernel/core_pattern || return 1
	(sleep 2; echo core >/proc/sys/kernel/core_pattern) &
}
found="kernel's program redirected: core_pattern .*, found |/bin/sh?/tmp/x"
