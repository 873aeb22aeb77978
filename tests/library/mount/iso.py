"""iso.py IMAGE [MODE]: makes an ISO 9660 image with the folder D, and in it the file F. With an octal mode, both have
that one, and an owner that no user of the machine is, by Rock Ridge."""
import struct
import sys

BLOCK = 2048
ROOT, FOLDER, DATA, PATHS = 18, 19, 20, 21
OWNER = 12345
CONTENT = b"content\n"
mode = int(sys.argv[2], 8) if len(sys.argv) > 2 else None


def both(form, value):
    return struct.pack("<" + form, value) + struct.pack(">" + form, value)


def record(name, block, size, folder, first=False):
    """A directory record (ECMA-119, 9.1). The root's first one says that the image has Rock Ridge (SUSP 5.3)."""
    system = b""
    if mode is not None:
        kind = 0o040000 if folder else 0o100000
        system += b"SP\7\1\xbe\xef\0" if first else b""
        system += b"PX\x24\1" + both("I", kind | mode) + both("I", 1) + both("I", OWNER) * 2
        if first:
            system += b"ER\x12\1\x0a\0\0\1" + b"RRIP_1991A"
    head = both("I", block) + both("I", size) + bytes([126, 1, 1, 0, 0, 0, 0]) + bytes([2 if folder else 0, 0, 0])
    head += both("H", 1) + bytes([len(name)]) + name + bytes(1 - len(name) % 2)
    length = 2 + len(head) + len(system)
    pad = length % 2
    return bytes([length + pad, 0]) + head + system + bytes(pad)


def descriptor():
    """The primary volume descriptor (8.4)."""
    paths = b"\1\0" + struct.pack("<I", ROOT) + b"\1\0\0\0"
    root = both("I", ROOT) + both("I", BLOCK) + bytes([126, 1, 1, 0, 0, 0, 0, 2, 0, 0]) + both("H", 1) + b"\1\0"
    root = bytes([34, 0]) + root
    text = b"\1CD001\1\0" + b" " * 64 + bytes(8) + both("I", 22) + bytes(32) + both("H", 1) * 2 + both("H", BLOCK)
    text += both("I", len(paths)) + struct.pack("<IIII", PATHS, 0, 0, 0) + root + b" " * 623 + bytes(69) + b"\1"
    return text, paths


primary, paths = descriptor()
blocks = {
    16: primary,
    17: b"\xffCD001\1",
    ROOT: record(b"\0", ROOT, BLOCK, True, True) + record(b"\1", ROOT, BLOCK, True) + record(b"D", FOLDER, BLOCK, True),
    FOLDER: record(b"\0", FOLDER, BLOCK, True) + record(b"\1", ROOT, BLOCK, True)
    + record(b"F.;1", DATA, len(CONTENT), False),
    DATA: CONTENT,
    PATHS: paths,
}
with open(sys.argv[1], "wb") as image:
    for number, content in blocks.items():
        image.seek(number * BLOCK)
        image.write(content)
    image.truncate(64 * BLOCK)
