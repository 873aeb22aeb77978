#!/usr/bin/env python3
"""mutants.py KYOZON IMAGE COUNT: changes bytes of the tables of copies of a qcow2 image, and reads and writes each by
kyozon fs. Each command must end in time with success or one error, and without a panic or a signal."""
import os
import random
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

program, image, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(image, "rb") as file:
    good = file.read()
(bits,) = struct.unpack_from(">I", good, 20)
l1_size, l1_at, references_at = struct.unpack_from(">IQQ", good, 36)
(l2_at,) = struct.unpack_from(">Q", good, l1_at)
(block_at,) = struct.unpack_from(">Q", good, references_at)
OFFSET = (1 << 56) - 512
places = {
    "header": lambda choose: choose.randrange(4, 112),
    "L1": lambda choose: l1_at + choose.randrange(8 * l1_size),
    "L2": lambda choose: (l2_at & OFFSET) + choose.randrange(64),
    "references": lambda choose: references_at + choose.randrange(16),
    "counts": lambda choose: block_at + choose.randrange(64),
}
values = [0, 1, 0x40, 0x7F, 0x80, 0xFF]


def bad_ends(number):
    """Makes a mutant and uses it. Returns what was wrong, a line each, and how many commands reported an error."""
    choose = random.Random(number)
    kind = list(places)[number % len(places)]
    mutant = bytearray(good)
    for _ in range(choose.choice([1, 1, 2, 8])):
        mutant[places[kind](choose)] = choose.choice(values + [choose.randrange(256)])
    copy = f"{image}.{number}"
    with open(copy, "wb") as file:
        file.write(mutant)
    wrong, refused = [], 0
    for command in [["find", copy + ":/"], ["cp", sys.argv[0], copy + ":/new"]]:
        try:
            out = subprocess.run(
                [program, "fs", *command], capture_output=True, text=True, timeout=60, errors="replace"
            )
        except subprocess.TimeoutExpired:
            wrong.append(f"{number}: {kind}: {command[0]} does not end")
            continue
        words = ("panicked", "driver", "status 101", "signal", "SIG")
        if out.returncode not in (0, 1) or any(word in out.stderr for word in words):
            wrong.append(f"{number}: {kind}: {command[0]}: {out.returncode}: {out.stderr.strip()}")
        refused += out.returncode
    os.remove(copy)
    return wrong, refused


with ThreadPoolExecutor(2) as pool:
    ends = list(pool.map(bad_ends, range(count)))
failed = [line for wrong, _ in ends for line in wrong]
refused = sum(refused for _, refused in ends)
print(*failed, sep="\n", end="\n" if failed else "")
print(f"{len(failed)} bad ends" if failed else "ended well")
sys.exit(bool(failed) or refused in (0, 2 * count))
