# crash.sh ISOLATION: loads a crash kernel and the monitor, changes the image in several places, and loads others.
attacks=/proc/kyozon-attacks

# load_crash_kernel [WORD]: loads the crash kernel, with this word on its command line.
load_crash_kernel() {
	/init crash-kernel /boot/vmlinuz /boot/initrd "console=ttyS0 panic=-1 nr_cpus=1 $1" || exit 1
}

# wait_for N PATTERN: waits until N lines of the events match.
wait_for() {
	for turn in $(seq 60); do
		[ "$(kyozon events | grep -c "$2")" -ge "$1" ] && return
		sleep 2
	done
	echo "not $1 of $2"
	kyozon events >&2
	return 1
}

passed() {
	kyozon status | sed -n 's/^check *crash-kernel: \([0-9]*\) passes.*/\1/p'
}

# wait_for_pass: waits until a pass that has not begun yet is complete.
wait_for_pass() {
	until=$(($(passed) + 2))
	while [ "$(passed)" -lt $until ]; do sleep 2; done
}

load_crash_kernel
insmod /m/kyozon-attacks.ko 2>/dev/null
kyozon load --isolation "$1" >/dev/null || exit 1
wait_for 1 'monitoring Linux' || exit 1
wait_for_pass
echo "unchanged: $(kyozon events | grep -c FINDING) findings"

# What lies beside the headers of the core file: purgatory, the boot parameters, the kernel, the initial file system.
echo patch-crash 1+8,2,3+8388608,4 >$attacks || exit 1
wait_for 4 'FINDING crash kernel changed' || exit 1
kyozon events | sed -n 's/.*FINDING crash kernel changed: \(.*\), physical 0x[0-9a-f]* at 0x.*/\1/p' | sort
echo undo >$attacks
wait_for 4 'crash kernel changed: .*: gone' && echo gone

# The same again, another one, and none. A slow load counts as none meanwhile.
load_crash_kernel
load_crash_kernel other
wait_for_pass
unloaded=$(kyozon events | grep -c 'crash kernel unloaded')
kexec_unload
wait_for $((unloaded + 1)) 'crash kernel unloaded' || exit 1
kyozon events | sed -n 's/.*\(crash kernel [lu][a-z]*\): kexec_crash_image at 0x[0-9a-f]*: /\1: /p' | tail -n 2
echo "in all: $(kyozon events | grep -c FINDING) findings"
rmmod kyozon-attacks
kyozon unload
