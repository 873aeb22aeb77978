# inspect.sh clean|hidden|undone: what kyozon inspect lists before, during and after attacks on lists of Linux.
inspect() {
	kyozon inspect "$@" 2>&1
	echo "status $?"
}

case $1 in
clean)
	insmod /m/kyozon-attacks.ko
	ip link set lo up
	mkdir -p /mnt && mount -t tmpfs none /mnt && mkdir /mnt/bind && mount --bind /proc /mnt/bind
	unshare -m sleep 1000 &
	packets &
	sleep 1
	;;
hidden)
	echo hide-socket >/proc/kyozon-attacks
	echo "hide-mount /mnt/bind" >/proc/kyozon-attacks
	grep -c . /proc/net/packet
	grep -c /mnt /proc/1/mountinfo
	cat /mnt/bind/sys/kernel/ostype
	;;
undone)
	echo undo >/proc/kyozon-attacks
	;;
esac
inspect sockets
inspect mounts | grep -E ' /mnt|verdict|status'
