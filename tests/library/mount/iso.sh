#!/bin/bash
# iso.sh: mounts ISO images as the user who runs this. Prints who owns a file in each, its rights, and what it says.
. "$(dirname "$0")/lib.sh"

/usr/bin/python3 "$(dirname "$0")/iso.py" plain.iso
/usr/bin/python3 "$(dirname "$0")/iso.py" zero.iso 0
for option in "" --allow-other; do
	for name in plain zero; do
		start $name.iso -r $option
		rights=$(stat -c %A mnt/d/f)
		echo $name $option "$(stat -c %u mnt/d/f) ${rights#-} $(cat mnt/d/f)"
		stop $name.iso
	done
done
"$KYOZON_PRODUCT/kyozon-linux" fs mount plain.iso mnt || true
"$KYOZON_PRODUCT/kyozon-linux-exec" --mount plain.iso:/mnt:iso9660 -- true || true
