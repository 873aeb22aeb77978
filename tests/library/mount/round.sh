#!/bin/bash
# round.sh KIND MEGABYTES MKFS...: everyday programs on a mounted image. Prints one line. FLAGS are options of mount.
. "$(dirname "$0")/lib.sh"
kind=$1 megabytes=$2
shift 2
image=$kind.img
truncate -s "${megabytes}M" "$image"
"$@" "$image" >mkfs.log 2>&1 || fail "$(cat mkfs.log)"
start "$image"

# A tree, there and back.
mkdir -p tree/empty tree/deep/er/still
seq 100000 >tree/numbers
printf 'one line\n' >"tree/deep/a name with spaces"
truncate -s 20M tree/sparse
printf end | dd of=tree/sparse bs=1 seek=15000000 conv=notrunc 2>/dev/null
touch -d '2001-02-03 04:05:06 UTC' tree/deep/er/old
for i in $(seq 300); do echo "$i" >"tree/deep/still-$i"; done
if [ "$kind" != vfat ]; then
	touch -d '1969-12-31 23:59:57.25 UTC' tree/deep/er/older
	ln -s ../numbers tree/deep/link
	ln -s /nowhere tree/deep/dangling
	ln tree/numbers tree/deep/second
	mkfifo tree/fifo
	chmod 2751 tree/deep/er
	chmod 510 tree/empty
fi
cp -a tree mnt/
cp -a mnt/tree back
list() {
	(cd "$1" && find . -type d -printf '%P %M %U %G %T@\n' -o -printf '%P %M %U %G %T@ %n %s\n' | LC_ALL=C sort)
}
if [ "$kind" = vfat ]; then
	diff -r tree back
else
	rm tree/fifo back/fifo && [ -p mnt/tree/fifo ] && rm mnt/tree/fifo
	chmod 700 tree/empty back/empty mnt/tree/empty
	diff -r --no-dereference tree back
	diff -r --no-dereference tree mnt/tree
	find tree back mnt/tree -type d -exec touch -d '2001-02-03 UTC' {} +
	list tree >want; list mnt/tree >got; cmp want got || fail "in the image: $(diff want got | head -n 4)"
	list back >got; cmp want got || fail "in the copy: $(diff want got | head -n 4)"
	[ "$(stat -c %i mnt/tree/numbers)" = "$(stat -c %i mnt/tree/deep/second)" ] || fail "no hard link"
	[ "$(stat -c %b mnt/tree/sparse)" -lt 100 ] || fail "the hole is full"
	setfattr -n user.colour -v blue mnt/tree/numbers
	[ "$(getfattr --only-values -n user.colour mnt/tree/deep/second)" = blue ]
	setfattr -x user.colour mnt/tree/numbers
	! getfattr -d mnt/tree/numbers | grep colour || fail "the attribute is still there"
fi
tar -C tree -cf tree.tar . && mkdir mnt/tar && tar -C mnt/tar --warning=no-timestamp -xf tree.tar
diff -r --no-dereference tree mnt/tar

# Open files outlive their names, and keep them through renames.
python3 - <<END
import os, ctypes, errno, mmap
os.chdir('mnt')
a = open('a', 'w+'); a.write('first'); a.flush()
os.rename('a', 'b'); a.write(' second'); a.flush()
assert open('b').read() == 'first second'
os.unlink('b'); a.write(' third'); a.flush(); a.seek(0)
assert a.read() == 'first second third' and os.fstat(a.fileno()).st_nlink == 0
os.ftruncate(a.fileno(), 5); a.seek(0)
assert a.read() == 'first'
open('c', 'w').write('c'); open('d', 'w').write('d')
rename = lambda old, new, how: ctypes.CDLL(None, use_errno=True).renameat2(-100, old, -100, new, how)
assert rename(b'c', b'd', 1) == -1 and ctypes.get_errno() == errno.EEXIST
if '$kind' != 'vfat':
    assert rename(b'c', b'd', 2) == 0 and open('c').read() == 'd'
    hole = open('hole', 'w+'); hole.write('x'); hole.flush(); os.ftruncate(hole.fileno(), 10 << 20)
    assert os.lseek(hole.fileno(), 0, os.SEEK_HOLE) < 1 << 20
    os.posix_fallocate(hole.fileno(), 0, 1 << 20)
    assert os.fstat(hole.fileno()).st_blocks * 512 >= 1 << 20
    to = open('copied', 'w+')
    assert os.copy_file_range(hole.fileno(), to.fileno(), 100) == 100
    m = mmap.mmap(to.fileno(), 100); m[0:1] = b'y'; m.flush()
    assert open('copied').read(1) == 'y'
os.mkdir('deleted'); here = os.getcwd(); os.chdir('deleted'); os.rmdir('../deleted')
assert os.listdir('.') == []
os.chdir(here)
for bad in ('no/such/file', 'c/x'):
    try: open(bad); assert False
    except OSError as e: assert e.errno in (errno.ENOENT, errno.ENOTDIR)
try: os.rmdir('tree'); assert False
except OSError as e: assert e.errno == errno.ENOTEMPTY
assert os.statvfs('.').f_blocks > 1000
END

# Programs.
export GIT_CONFIG_GLOBAL=/dev/null
git() { command git -C mnt/repository -c user.name=x -c user.email=x@example.org "$@"; }
mkdir mnt/repository
git init -q . && cp -r tree/deep mnt/repository/ && git add . && git commit -q -m 'one' && git fsck --strict 2>/dev/null
[ -z "$(git status --porcelain)" ] || fail "git sees changes"
sqlite3 mnt/db "create table t(n); with recursive c(n) as (select 1 union all select n + 1 from c where n < 5000)
	insert into t select n from c; pragma integrity_check; select sum(n) from t;" | tr '\n' ' ' | grep -qx 'ok 12502500 '
for i in 1 2 3 4; do
	(for j in $(seq 30); do
		seq $((i * j * 10)) >"mnt/w$i.$j"
		[ "$(tail -n 1 "mnt/w$i.$j")" = $((i * j * 10)) ]
		mv "mnt/w$i.$j" "mnt/w$i"
	done) &
	eval "writer$i=\$!"
done
for i in 1 2 3 4; do eval "wait \$writer$i"; done

stop "$image"
check "$kind" "$image"
# What was written is there.
start "$image" -r
diff -r tree/deep mnt/repository/deep >/dev/null 2>&1 || [ "$kind" != vfat ] || fail "other contents after a mount"
sqlite3 "file:mnt/db?immutable=1" 'select count(*) from t' | grep -qx 5000
[ "$(tail -n 1 mnt/w4)" = 1200 ]
stop "$image"
echo "$kind as $(id -u): there and back"
