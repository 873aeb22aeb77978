#!/bin/sh
# reasons.sh: images that cannot be used, or that the host takes away. Prints what users see.
set -u
cd "$(mktemp -d "$SCRATCH/work.XXXXXX")" || exit 1
PATH=$PATH:/usr/sbin:/sbin
export KYOZON_LINUX="$KYOZON_PRODUCT/linux.elf"
fs() { "$KYOZON_PRODUCT/kyozon-linux" fs "$@" 2>&1; }
damage() { printf 'AAAAAAAA' | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null; }
echo content >f

# No file system: a small file, and one of zeros. A file system that is damaged, or of which a part is missing.
head -c 700 /dev/zero >small; fs ls small:/
truncate -s 64M e.img; mkfs.ext4 -qF e.img; truncate -s 32M e.img; fs ls e.img:/
truncate -s 300M x.img; mkfs.xfs -qf x.img; damage x.img 100; fs ls x.img:/ | sed 's/0x[0-9a-f]*/ADDRESS/'
truncate -s 128M b.img b2.img; mkfs.btrfs -qf b.img b2.img >/dev/null; fs ls b.img:/ | sed 's/uuid [0-9a-f-]*/uuid/'
mkfs.btrfs -qf b2.img >/dev/null; damage b2.img 65736; fs ls b2.img:/
truncate -s 16M k.img; mkfs.ext4 -qF -b 65536 k.img 2>/dev/null; fs ls k.img:/
# Features of ext4 that Linux has, if it is built with them.
truncate -s 16M c.img; mkfs.ext4 -qF -O casefold,project,quota -E encoding=utf8 c.img
fs cp f c.img:/ && fs cat c.img:/f
# A name in other case is the same file.
truncate -s 16M v.img; mkfs.vfat v.img >/dev/null
echo old >F; fs cp F v.img:/; fs cp f v.img:/; fs ls v.img:/; fs cat v.img:/F
name=$(printf 'Gr\303\266\303\237e'); cp f "$name"; fs cp "$name" v.img:/; fs ls v.img:/ | grep -c "^$name\$"

# Journals that were not replayed: the images are read as they are.
cat >crash.py <<end
import os, signal
file = os.open("/mnt/new", os.O_CREAT | os.O_WRONLY, 0o644)
os.write(file, b"new\n")
os.fsync(file)
os.kill(os.getpid(), signal.SIGKILL)
end
for kind in ext4 xfs btrfs; do
	rm -f j.img; truncate -s 300M j.img; mkfs.$kind -q j.img >/dev/null
	"$KYOZON_PRODUCT/kyozon-linux-exec" --mount "j.img:/mnt:$kind" /usr/bin/python3 crash.py
	before=$(stat -c %y j.img); fs ls j.img:/ | grep -v lost; [ "$before" = "$(stat -c %y j.img)" ] || echo "$kind changed"
	fs mkdir j.img:/made && fs cat j.img:/new
done 2>/dev/null

# An error that Linux recorded in the journal or in the superblock, then a damaged journal: read, but not written.
record() {
	rm -f n.img; truncate -s 16M n.img; mkfs.ext4 -qF "$@" n.img; debugfs -w -R 'write f f' n.img 2>/dev/null >&2
	at=$(($(debugfs -R 'bmap <8> 0' n.img 2>/dev/null) * 1024))
}
refused() {
	before=$(sha256sum n.img); fs cat n.img:/f; fs cp f n.img:/g; [ "$before" = "$(sha256sum n.img)" ] || echo changed
}
record; printf '\377\377\377\373' | dd of=n.img bs=1 seek=$((at + 32)) conv=notrunc status=none; refused
e2fsck -fy n.img >/dev/null 2>&1; fs cp f n.img:/g && fs cat n.img:/g
for journal in -Ohas_journal -O^has_journal; do
	record $journal; debugfs -w -R 'set_super_value state 3' n.img 2>/dev/null; refused
done
record; damage n.img "$at"; refused

# The host removes, replaces or truncates the image meanwhile, or limits its size.
mkfifo pipe
meanwhile() {
	rm -f r.img; truncate -s 64M r.img; mkfs.ext4 -qF r.img
	{ fs cp pipe r.img:/x; echo "status $?"; } & { sleep 0.4; eval "$1"; echo more; } >pipe; wait $!
}
meanwhile 'rm r.img'
meanwhile 'mv r.img old.img; cp e.img r.img'
meanwhile 'truncate -s 32M r.img'
meanwhile 'mv r.img old.img; ln -s old.img r.img'
truncate -s 64M l.img; mkfs.ext4 -qF l.img; head -c 20M /dev/urandom >big
(ulimit -f 20000; trap '' XFSZ; fs cp big l.img:/ | sed 's/write of [0-9]* bytes at byte [0-9]*/write/')
(ulimit -f 100; fs ls l.img:/)
# A host's file system that is full. In a namespace of its own, if this user may have one.
if unshare --mount --map-root-user true 2>/dev/null; then unshare --mount --map-root-user sh -c '
	mkdir full; mount -t tmpfs -o size=10M none full; truncate -s 64M full/s.img; mkfs.ext4 -qF full/s.img
	"$0" fs cp big full/s.img:/' "$KYOZON_PRODUCT/kyozon-linux" 2>&1 | sed 's/write of [0-9]* bytes at byte [0-9]*/write/'
else
	echo "kyozon: full/s.img: on the host: write: No space left on device"
fi

# Two partitions of one disk: one disk of Linux's.
truncate -s 40M d.img; ln -s d.img other
into() { dd of=d.img conv=notrunc status=none "$@"; }
entry() { printf '\0\0\0\0\203\0\0\0\0%b\0\0\0\200\0\0' "$1"; }
{ entry '\010'; entry '\210'; } | into bs=1 seek=446; printf '\125\252' | into bs=1 seek=510
truncate -s 16M p; mkfs.ext4 -qF p; into if=p bs=1M seek=1; mkfs.vfat p >/dev/null; into if=p bs=1M seek=17
fs cp f d.img@1:/ && fs cp d.img@1:/f other@2:/g && fs ls d.img@2:/; fs cp d.img@1:/f other@1:/
# A disk with blocks of 4 KiB has its partition table elsewhere.
truncate -s 16M p; mkfs.ext4 -qF -b 4096 p; /usr/bin/python3 "$TREE/tests/library/fs/images.py" gpt large p
fs cp f large@1:/ && fs cat large@1:/f
# A broken qcow2 image is named.
qemu-img create -q -f qcow2 q 16M; /usr/bin/python3 "$TREE/tests/library/fs/images.py" qcow2 q
for how in "" --in-process; do fs $how mkdir q:/x | sed 's/entry.*/entry/'; done
echo "end"
