"""Samples of the operator that decodes images: files of the formats without loss, and the pixels they were made of.

The writers here follow the formats' specifications; formats with loss, and files by other writers, are held against
Pillow in tests/operators/test_images.py.
"""

import struct
import zlib

import numpy as np

PIXELS = {}  # of each file that was made here: [height, width, (red, green, blue)]


def packed(samples, bits, order=">"):
    """Rows of samples as rows of whole bytes, the first sample in the highest bits."""
    if bits == 16:
        return np.ascontiguousarray(samples.astype(f"{order}u2")).view(np.uint8)
    return np.packbits((samples[..., None] >> np.arange(bits)[::-1]).astype(np.uint8).reshape(len(samples), -1) & 1, 1)


def eighths(samples, bits):
    """Samples as readers see them: of 8 bits."""
    return samples >> 8 if bits == 16 else samples * 255 // ((1 << bits) - 1)


def size(d):
    height, width = d.integer(1, 40), d.integer(1, 40)
    return d.choice([(1, 1), (1, width), (height, 1)]) if d.chance(0.3) else (height, width)


def samples(d, height, width, channels, bits):
    return d.rng.integers(0, 1 << bits, (height, width, channels))


def palette(d, bits):
    return d.rng.integers(0, 256, (1 << bits, 3))


# PNG.


PNG = b"\x89PNG\r\n\x1a\n"


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def paeth(a, b, c):
    p = a + b - c
    da, db, dc = abs(p - a), abs(p - b), abs(p - c)
    return a if da <= db and da <= dc else b if db <= dc else c


def filtered(d, rows, step):
    """Each row of bytes by a filter of its own; `step`: bytes to the pixel on the left."""
    out, above = [], np.zeros(rows.shape[1], np.int64)
    for row in rows.astype(np.int64):
        kind = d.integer(0, 4)
        left, corner = (np.concatenate([np.zeros(step, np.int64), x])[: len(row)] for x in (row, above))
        guess = [0, left, above, (left + above) // 2, None][kind]
        if guess is None:
            guess = np.array([paeth(*v) for v in zip(left.tolist(), above.tolist(), corner.tolist(), strict=True)])
        out.append(bytes([kind]) + ((row - guess) & 255).astype(np.uint8).tobytes())
        above = row
    return b"".join(out)


# The passes of an interlaced image: first row, first column, steps.
PASSES = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def png(d, height, width):
    kind, depths, channels = d.choice(
        [(0, (1, 2, 4, 8, 16), 1), (2, (8, 16), 3), (3, (1, 2, 4, 8), 1), (4, (8, 16), 2), (6, (8, 16), 4)]
    )
    bits = d.choice(depths)
    x = samples(d, height, width, channels, bits)
    interlaced = d.chance(0.4)
    body = b""
    for row, column, rows, columns in PASSES if interlaced else [(0, 0, 1, 1)]:
        part = x[row::rows, column::columns]
        if part.size:
            body += filtered(d, packed(part.reshape(len(part), -1), bits), max(channels * bits // 8, 1))
    file = PNG + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, interlaced))
    colors = eighths(x, bits)
    if kind == 3:
        table = palette(d, bits)
        file += chunk(b"PLTE", table.astype(np.uint8).tobytes())
        file += chunk(b"tRNS", bytes([0, 128][: len(table)])) if d.chance(0.3) else b""
        colors = table[x[..., 0]]
    file += chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")
    return file, colors[..., : 1 if channels < 3 and kind != 3 else 3]


# BMP.


def bmp(d, height, width):
    bits = d.choice([1, 4, 8, 16, 24, 32])
    old, upward = bits != 16 and bits != 32 and d.chance(0.3), d.chance(0.7)
    table, masks, compression = b"", b"", 0
    if bits <= 8:
        x, entries = samples(d, height, width, 1, bits), palette(d, bits)
        x[...] = np.repeat(x[:, :1], width, 1) if d.chance(0.3) else x
        colors = entries[x[..., 0]]
        table = b"".join(bytes(int(v) for v in entry[::-1]) + (b"" if old else b"\0") for entry in entries)
        rows = packed(x[..., 0], bits)
    else:
        depths = {16: d.choice([(5, 5, 5), (5, 6, 5)]), 24: (8, 8, 8), 32: (8, 8, 8)}[bits]
        parts = [samples(d, height, width, 1, depth)[..., 0] for depth in depths]
        colors = np.stack([part * 255 // ((1 << depth) - 1) for part, depth in zip(parts, depths, strict=True)], -1)
        shifts = (depths[1] + depths[2], depths[2], 0)
        whole = sum(part << shift for part, shift in zip(parts, shifts, strict=True))
        rows = np.ascontiguousarray(whole.astype("<u4")).view(np.uint8).reshape(height, width, 4)
        rows = rows[..., : bits // 8].reshape(height, -1)
        if bits != 24 and (depths == (5, 6, 5) or d.chance(0.5)):
            compression = 3
            masks = struct.pack("<3I", *(((1 << n) - 1) << s for n, s in zip(depths, shifts, strict=True)))
    rows = np.pad(rows, [(0, 0), (0, -rows.shape[1] % 4)])
    body = (rows[::-1] if upward or old else rows).tobytes()
    if bits == 8 and not old and upward and d.chance(0.6):
        body, compression = runs(d, x[::-1, :, 0].tolist()), 1
    if old:
        header = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        header = struct.pack("<IiiHHIIiiII", 40, width, height if upward else -height, 1, bits, compression,
                             len(body), 0, 0, 0, 0)  # fmt: skip
    head = header + masks + table
    return b"BM" + struct.pack("<IHHI", 14 + len(head) + len(body), 0, 0, 14 + len(head)) + head + body, colors


def runs(d, rows):
    """Rows as runs of one value, and as values as they are, by chance."""
    out = b""
    for row in rows:
        while row:
            count = next((n for n, v in enumerate(row) if v != row[0]), len(row))
            if len(row) > 3 and d.chance(0.5):
                count = d.integer(3, min(len(row), 255))
                out += bytes([0, count, *row[:count]]) + b"\0" * (count % 2)
            else:
                out += bytes([count, row[0]])
            row = row[count:]
        out += b"\0\0"
    return out + b"\0\1"


# PBM, PGM, PPM.


def pnm(d, height, width):
    kind = d.integer(1, 6)
    channels, most = (3 if kind % 3 == 0 else 1), 1 if kind % 3 == 1 else d.choice([1, 15, 255, 65535])
    x = d.rng.integers(0, most + 1, (height, width, channels))
    space = [" ", "\n", "\t", " # of it\n"][d.integer(0, 3)]
    head = f"P{kind}\n# a comment\n{width}{space}{height}\n" + (f"{most}\n" if kind % 3 != 1 else "")
    flat = x.reshape(height, -1)
    if kind <= 3:
        gap = "" if kind == 1 and d.chance(0.5) else " "
        body = "".join(gap.join(map(str, row)) + "\n" for row in flat.tolist()).encode()
    elif kind == 4:
        body = packed(flat, 1).tobytes()
    else:
        body = flat.astype(">u2" if most > 255 else "u1").tobytes()
    return head.encode() + body, (255 * (1 - x) if most == 1 and kind % 3 == 1 else (x * 255 + most // 2) // most)


# TIFF.


def turned(x, orientation):
    """An image as it is seen whose rows and columns are stored in one of the eight ways."""
    x = x.swapaxes(0, 1) if orientation >= 5 else x
    flips = {1: (), 2: (1,), 3: (0, 1), 4: (0,), 5: (), 6: (1,), 7: (0, 1), 8: (0,)}[orientation]
    return np.flip(x, flips)


def tiff(d, height, width):
    order = d.choice("<>")
    kind, depths, channels = d.choice(
        [(0, (1, 2, 4, 8, 16), 1), (1, (1, 2, 4, 8, 16), 1), (2, (8, 16), 3), (2, (8,), 4), (3, (1, 4, 8), 1),
         (5, (8,), 4)]
    )  # fmt: skip
    bits, orientation = d.choice(depths), d.integer(1, 8) if d.chance(0.4) else 1
    x = samples(d, height, width, channels, bits)
    table = palette(d, bits) if kind == 3 else None
    value = eighths(x, bits)
    if kind == 3:
        colors = table[x[..., 0]]
    else:
        colors = inks(value) if kind == 5 else 255 - value if kind == 0 else value[..., :3]
    planes = [x[..., k : k + 1] for k in range(channels)] if d.chance(0.4) and channels > 1 else [x]
    tile = (16 * d.integer(1, 2), 16 * d.integer(1, 2)) if d.chance(0.4) else None
    rows = d.integer(1, height)
    step = tile or (rows, width)
    deflate = d.chance(0.5)
    parts = []
    for plane in planes:
        for y in range(0, height, step[0]):
            for column in range(0, width, step[1]):
                part = plane[y : y + step[0], column : column + step[1]]
                if tile:
                    part = np.pad(part, [(0, tile[0] - part.shape[0]), (0, tile[1] - part.shape[1]), (0, 0)])
                data = packed(part.reshape(len(part), -1), bits, order).tobytes()
                parts.append(zlib.compress(data) if deflate else data)
    tags = {
        256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * channels), 259: (3, [8 if deflate else 1]),
        262: (3, [kind]), 274: (3, [orientation]), 277: (3, [channels]), 284: (3, [1 if len(planes) == 1 else 2]),
    }  # fmt: skip
    tags |= {322: (4, [tile[1]]), 323: (4, [tile[0]])} if tile else {278: (4, [rows])}
    tags |= {320: (3, (table.T * 257).ravel().tolist())} if kind == 3 else {}
    tags |= {338: (3, [2])} if kind == 2 and channels == 4 else {}
    return directory(order, tags, parts, tile), turned(colors, orientation)


def directory(order, tags, parts, is_tiled):
    """The file: header, the directory of tags, values that do not fit into it, the parts."""
    where, counts = (324, 325) if is_tiled else (273, 279)
    tags = tags | {where: (4, [0] * len(parts)), counts: (4, [len(part) for part in parts])}
    after = 8 + 2 + 12 * len(tags) + 4
    sizes = {3: "H", 4: "I"}
    values = {tag: len(entries) * struct.calcsize(sizes[kind]) for tag, (kind, entries) in tags.items()}
    at = after + sum(n for n in values.values() if n > 4)
    starts = np.cumsum([at, *(len(part) for part in parts[:-1])]).tolist()
    tags[where] = (4, starts)
    entries, outside = b"", b""
    for tag, (kind, numbers) in sorted(tags.items()):
        data = struct.pack(f"{order}{len(numbers)}{sizes[kind]}", *numbers)
        if len(data) > 4:
            offset, outside = after + len(outside), outside + data
            data = struct.pack(order + "I", offset)
        entries += struct.pack(order + "HHI", tag, kind, len(numbers)) + data.ljust(4, b"\0")
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HIH", 42, 8, len(tags))
    return head + entries + struct.pack(order + "I", 0) + outside + b"".join(parts)


def inks(value):
    light = 255 - value[..., 3:]
    product = value[..., :3] * light + 128
    return light - ((product >> 8) + product >> 8)


WRITERS = {"png": png, "bmp": bmp, "pnm": pnm, "tiff": tiff}


def written(d, name):
    """A file of that format, remembered with its pixels."""
    file, colors = WRITERS[name](d, *size(d))
    PIXELS[file] = np.broadcast_to(colors, (*colors.shape[:2], 3))
    return np.frombuffer(file, d.dtype("T1"))


def decoder(d):
    file = written(d, d.choice(list(WRITERS)))
    attributes = {"pixel_format": d.choice(["RGB", "BGR", "Grayscale"])} if d.chance(0.8) else {}
    return d.sample([file], attributes=attributes, types=[np.dtype(np.uint8)])


# What it must answer.


def in_format(colors, pixel_format):
    """Brightness by ITU-R BT.601, rounded from 16 fractional bits."""
    if pixel_format == "Grayscale":
        return (colors.astype(np.int64) @ [19595, 38470, 7471] + 0x8000 >> 16)[..., None].astype(np.uint8)
    return colors[..., ::-1] if pixel_format == "BGR" else colors


def decoded(s, x):
    return in_format(PIXELS[x.tobytes()], s.attributes.get("pixel_format", "RGB"))


GENERATORS = {"ImageDecoder": decoder}
OWN = {"ImageDecoder": ("it asks Pillow", decoded)}
