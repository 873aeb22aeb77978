# lock.sh: locks a wall, tries to open it without the file and from a module, and opens it with the file.
. /lib.sh
insmod /m/kyozon-attacks.ko || exit 1
head -c 32 /dev/urandom >/tmp/key
head -c 32 /dev/urandom >/tmp/other

# root WORD...: runs an attempt of root.c and prints its result.
root() {
	echo "root $*" >/proc/kyozon-attacks
	echo "root: $(tail -n 1 /proc/kyozon-attacks)"
}

load --isolation vmm --key-file /tmp/key >/dev/null || exit 1
wait_for_ticks || exit 1
kyozon unload
echo "without file: $?"
kyozon unload --key-file /tmp/other
echo "other file: $?"
# What is left of the key in kyozon.ko's memory is no key.
root vmmcall open leaked
root vmmcall stop leaked
root forge
for report in 'call 0x4b590002 without the key' 'call 0x4b590004 without the key' 'write to 0x.*: the event ring'; do
	kyozon events | grep -o "wall: $report" | head -n 1
done | cut -d ' ' -f -3
before=$(field ticks)
sleep 0.5
[ $(field ticks) -gt $before ] && echo "$(field state), ticks go on"
kyozon unload --key-file /tmp/key
