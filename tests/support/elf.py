"""What is in a shared library: sections and functions, read from its ELF file (64 bits, little-endian)."""

import struct
from pathlib import Path


def _sections(data):
    """(name, type, offset, size, link) of each section."""
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    names_at = rows[names][4]
    return [(_text(data, names_at + row[0]), row[1], row[4], row[5], row[6]) for row in rows]


def _text(data, at):
    return data[at : data.index(b"\0", at)].decode()


def section(path, name):
    """The bytes of a section; None where there is none of that name."""
    data = Path(path).read_bytes()
    return next((data[at : at + size] for found, _, at, size, _ in _sections(data) if found == name), None)


def functions(path):
    """(name, address, bytes) of each function in the table of symbols, by address."""
    data = Path(path).read_bytes()
    sections = _sections(data)
    found = []
    for _, kind, at, size, link in sections:
        if kind != 2:  # SHT_SYMTAB
            continue
        for entry in range(at, at + size, 24):
            name, info, _, index, value, length = struct.unpack_from("<IBBHQQ", data, entry)
            if info & 15 == 2 and index != 0:  # STT_FUNC that is defined
                found.append((_text(data, sections[link][2] + name), value, length))
    return sorted(found, key=lambda row: row[1])
