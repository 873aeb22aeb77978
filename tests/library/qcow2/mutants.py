#!/usr/bin/env python3
"""mutants.py KYOZON IMAGE COUNT: changes bytes of the tables of copies of a qcow2 image, and reads and writes each by
kyozon fs. Each command must end in time with success or one error, and without a panic or a signal."""
import random
import struct
import subprocess
import sys

program, image, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(image, "rb") as file:
    good = file.read()
(bits,) = struct.unpack_from(">I", good, 20)
l1_size, l1_at, references_at = struct.unpack_from(">IQQ", good, 36)
(l2_at,) = struct.unpack_from(">Q", good, l1_at)
(block_at,) = struct.unpack_from(">Q", good, references_at)
OFFSET = (1 << 56) - 512
places = {
    "header": lambda: random.randrange(4, 112),
    "L1": lambda: l1_at + random.randrange(8 * l1_size),
    "L2": lambda: (l2_at & OFFSET) + random.randrange(64),
    "references": lambda: references_at + random.randrange(16),
    "counts": lambda: block_at + random.randrange(64),
}
values = [0, 1, 0x40, 0x7F, 0x80, 0xFF]
copy = image + ".mutant"
failed = refused = 0
for number in range(count):
    random.seed(number)
    kind = list(places)[number % len(places)]
    mutant = bytearray(good)
    for _ in range(random.choice([1, 1, 2, 8])):
        mutant[places[kind]()] = random.choice(values + [random.randrange(256)])
    with open(copy, "wb") as file:
        file.write(mutant)
    for command in [["find", copy + ":/"], ["cp", sys.argv[0], copy + ":/new"]]:
        try:
            out = subprocess.run(
                [program, "fs", *command], capture_output=True, text=True, timeout=60, errors="replace"
            )
        except subprocess.TimeoutExpired:
            print(f"{number}: {kind}: {command[0]} does not end")
            failed += 1
            continue
        words = ("panicked", "driver", "status 101", "signal", "SIG")
        if out.returncode not in (0, 1) or any(word in out.stderr for word in words):
            print(f"{number}: {kind}: {command[0]}: {out.returncode}: {out.stderr.strip()}")
            failed += 1
        refused += out.returncode
print(f"{failed} bad ends" if failed else "ended well")
sys.exit(failed > 0 or refused in (0, 2 * count))
