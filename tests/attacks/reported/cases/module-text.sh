# A function of a listed module returns 0 at once.
attack() {
	echo "patch-module veth_open" >/proc/kyozon-attacks
}
found="module text changed: module veth+0x[0-9a-f]* .*, found 31 c0 c3"
