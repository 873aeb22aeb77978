#!/bin/sh
# tar.sh: archives of GNU tar into an image, and archives of an image to GNU tar. Prints one line for each difference,
# and a last one.
set -u
# A folder of its own: what another case left there may be a link.
cd "$(mktemp -d "$SCRATCH/work.XXXXXX")" || exit 1
PATH=$PATH:/usr/sbin:/sbin
fs() { "$KYOZON_PRODUCT/kyozon-linux" fs "$@"; }
export KYOZON_LINUX="$KYOZON_PRODUCT/linux.elf"

long=$(printf '%0120d' 0)
mkdir -p "tree/$long/$long" tree/d
seq 3000 >tree/file
echo x >"tree/$long/$long/deep"
ln tree/file "tree/d/second"; ln -s "../$long/$long/deep" tree/d/link; ln -s /etc tree/d/out
mkfifo tree/d/fifo; mknod tree/d/node c 1 3 2>/dev/null
truncate -s 90M tree/sparse; printf middle | dd of=tree/sparse bs=1 seek=15000000 conv=notrunc 2>/dev/null
printf end | dd of=tree/sparse bs=1 seek=80000000 conv=notrunc 2>/dev/null
truncate -s 1M tree/hole; printf 'not \377 text' >"tree/$(printf 'bad\377')"
setfattr -n user.colour -v blue tree/file; setfattr -n trusted.x -v y -h tree/d/link 2>/dev/null
chmod 4751 tree/file; chmod 2750 tree/d
touch -d '1950-01-02 03:04:05.25 UTC' tree/hole; touch -d '2001-02-03 04:05:06.123456789 UTC' tree/d/second tree/d
show() {
	(cd "$1" && find . -mindepth 1 -name lost+found -prune -o -printf '%P %y %m %U %G %n %l %T@ %s\n' | LC_ALL=C sort
		getfattr -R -h -d -m '^(user|trusted)' . 2>/dev/null; find . -type f -exec cksum {} + | LC_ALL=C sort)
}
show tree >want
truncate -s 64M a.img; mkfs.ext4 -q a.img
for format in "gnu -S" "pax -S --sparse-version=1.0" "pax -S --sparse-version=0.1" "pax -S --sparse-version=0.0"; do
	case $format in gnu*) xattrs= ;; *) xattrs="--xattrs --xattrs-include=*" ;; esac
	tar -C tree $xattrs --format=$format -cf in.tar . || continue
	fs mkdir a.img:/t && fs tar -x a.img:/t <in.tar || echo "$format: failed"
	# Out of the image by an archive of ours.
	rm -rf out; mkdir out; fs tar a.img:/t | tar -C out --xattrs --xattrs-include='*' --warning=no-timestamp -xpf -
	show out >got
	case $format in
	# GNU's own format has neither attributes nor fractions of seconds.
	gnu*) sed 's/\(\.[0-9]*\) \([0-9]*\)$/ \2/' got | grep -a -v -e '^user' -e '^trusted' -e '^# file' -e '^$' >got1
		sed 's/\(\.[0-9]*\) \([0-9]*\)$/ \2/' want | grep -a -v -e '^user' -e '^trusted' -e '^# file' -e '^$' >want1
		cmp -s got1 want1 || { echo "$format:"; diff want1 got1; } ;;
	*) cmp -s got want || { echo "$format:"; diff want got; } ;;
	esac
	[ "$(stat -c %b out/sparse)" -lt 100 ] || echo "$format: holes are lost"
	fs rm -r a.img:/t
done
tar -C tree --format=ustar -cf - file d/out | fs tar -x a.img:/ && fs cat a.img:/file | cmp - tree/file
fs tar a.img:/ -f own.tar && tar -tf own.tar >/dev/null && fs tar -x -f own.tar a.img:/ && fs tar a.img:/ -f a.img

# Hostile archives: nothing outside of the folder changes.
fs mkdir a.img:/in; mkdir -p h/x; echo hostile >h/x/f; ln -s / h/l; ln -s .. h/up
hostile() { fs tar -x a.img:/in <h.tar; echo "$1: status $?"; }
tar -C h -P --transform 's,x/f,/evil,' -cf h.tar x/f; hostile absolute
tar -C h -P --transform 's,x/f,../evil,' -cf h.tar x/f; hostile dots
for link in l up; do tar -C h --transform "s,x/f,$link/evil," -cf h.tar $link x/f; hostile $link; done
fs mkdir -p a.img:/in/over/x; tar -C h --transform 's,x/f,over,' -cf h.tar x/f; hostile over
head -c 2000 in.tar >h.tar; hostile truncated
gzip <in.tar >h.tar; hostile compressed
fs find a.img:/ --name evil
# A full file system names the file, and is in order.
head -c 80M /dev/zero | tr '\0' x >h/big; tar -C h -cf - big | fs tar -x a.img:/; echo "full: status $?"
e2fsck -fn a.img >check 2>&1 || cat check
# A signal ends it between two steps.
truncate -s 64M v.img; mkfs.vfat -F 32 v.img >/dev/null; mkfifo pipe
"$KYOZON_PRODUCT/kyozon-linux" fs tar -x v.img:/ <pipe & process=$!
{ tar -C h -cf - big | head -c 20M; sleep 1; kill -TERM $process; sleep 1; } >pipe
wait $process 2>/dev/null; echo "signal: status $?"; fsck.vfat -n v.img >check 2>&1 || cat check
echo compared
