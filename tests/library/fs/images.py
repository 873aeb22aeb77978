"""images.py gpt IMAGE FILE: puts a file into the only partition of an image of a disk with blocks of 4 KiB.
images.py qcow2 IMAGE: breaks the table of reference counts."""
import struct
import sys
import zlib

BLOCK = 4096


def gpt(name, content):
    content = open(content, "rb").read()
    first, blocks = 256, len(content) // BLOCK
    last = first + blocks - 1
    end = last + 34
    entry = bytes(range(16)) + bytes(range(1, 17)) + struct.pack("<QQQ", first, last, 0) + "part".encode("utf-16le")
    entries = entry.ljust(128, b"\0").ljust(128 * 128, b"\0")

    def header(crc):
        fields = (b"EFI PART", 0x10000, 92, crc, 0, 1, end, 6, end - 5, bytes(16), 2, 128, 128, zlib.crc32(entries))
        return struct.pack("<8sIIIIQQQQ16sQIII", *fields)

    protective = struct.pack("<BBBBBBBBII", 0, 0, 2, 0, 0xEE, 255, 255, 255, 1, end)
    with open(name, "wb") as image:
        image.truncate((end + 1) * BLOCK)
        for at, data in [
            (446, protective), (510, b"\x55\xaa"), (BLOCK, header(zlib.crc32(header(0)))), (2 * BLOCK, entries),
            (first * BLOCK, content),
        ]:
            image.seek(at)
            image.write(data)


def qcow2(name):
    with open(name, "r+b") as image:
        image.seek(48)
        table, = struct.unpack(">Q", image.read(8))
        image.seek(table)
        image.write(struct.pack(">Q", 0x7FFF000000000001))


if sys.argv[1] == "gpt":
    gpt(*sys.argv[2:])
else:
    qcow2(sys.argv[2])
