# inspect.sh clean|hidden|refused: what kyozon inspect prints in each case, and its exit status.
insmod /m/kyozon-attacks.ko 2>/dev/null
files=/lib/modules/$(uname -r)/updates
mkdir -p "$files" && cp /m/kyozon-attacks.ko "$files"
# Linux 6.1 has the channel to the laboratory in modules.
for module in /kyozon/modules/*.ko; do
	[ ! -e "$module" ] || cp "$module" "$files/${module##*/[0-9][0-9]-}"
done

inspect() {
	kyozon inspect "$@" 2>&1
	echo "status $?"
}

case $1 in
clean)
	inspect
	# The emulator takes long to unpack the image, and lists need it only for symbols that somebody filters.
	mv /boot /elsewhere
	(while :; do true | true & wait; done) & busy=$!
	inspect tasks | grep -E '^1 |verdict|status'
	kill $busy
	inspect modules | grep -v '^virtio'
	inspect hooks
	bpf tracepoint sched_switch 100000 & program=$!
	sleep 1
	inspect bpf
	inspect memory
	kill $program
	ip link set lo up
	nc -l -p 4444 </dev/null >/dev/null & listener=$!
	unshare -n nc -l -p 5555 </dev/null >/dev/null & inner=$!
	sleep 1
	inspect sockets
	kill $listener $inner
	mkdir -p /mnt && mount -t tmpfs none /mnt && mkdir /mnt/bind && mount --bind /proc /mnt/bind
	unshare -m sleep 1000 & apart=$!
	inspect mounts | grep -E ' /mnt|verdict|status'
	inspect cpus
	kill $apart
	rings & user=$!
	sleep 1
	inspect rings | sed "s/^$user /user /"
	kill $user
	;;
hidden)
	sleep 1000 & hidden=$!
	sleep 1000 & filtered=$!
	echo "hide-list-pid $hidden" >/proc/kyozon-attacks
	echo "filter-process $filtered" >/proc/kyozon-attacks
	echo hide-module >/proc/kyozon-attacks
	names="s/\\b$hidden\\b/hidden/g; s/\\b$filtered\\b/filtered/g"
	inspect tasks | sed "$names" | grep -E '^hidden|^filtered|verdict|status'
	kyozon inspect tasks --json | grep -c '"/proc"'
	inspect modules | grep -v '^virtio'
	inspect hooks
	bpf tracepoint sched_switch 100000 & program=$!
	sleep 1
	echo "hide-bpf index" >/proc/kyozon-attacks
	inspect bpf
	nc -l -p 4444 </dev/null >/dev/null & listener=$!
	sleep 1
	echo "filter-socket 4444" >/proc/kyozon-attacks
	inspect sockets
	echo "undo filter-socket" >/proc/kyozon-attacks
	inspect | sed "$names" | grep -E 'check|FINDING|verdict|status'
	echo undo >/proc/kyozon-attacks
	kill $hidden $filtered $program $listener
	;;
refused)
	mkdir -p /etc
	printf 'root::0:0::/:/bin/sh\nother::1001:1001::/:/bin/sh\n' >/etc/passwd
	su other -c 'kyozon inspect' 2>&1
	echo "status $?"
	unshare -p -f -m sh -c 'mount -t proc proc /proc; kyozon inspect tasks' 2>&1
	echo "status $?"
	;;
esac
