# A function of a module returns 0 from its middle on. The module was loaded after the monitor, where another one was.
attack() {
	for turn in 1 2 3; do
		rmmod dummy
		insmod /kyozon/modules/*-dummy.ko && sleep 2
	done
	echo "patch-module dummy_xmit+0x11" >/proc/kyozon-attacks
}
found="module text changed: module dummy+0x[0-9a-f]* .*, found 31 c0 c3"
