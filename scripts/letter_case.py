"""Writes src/runtime/kernels/strings/letter_case.def: Unicode's simple mappings of case, as Python knows them."""

import unicodedata
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "src/runtime/kernels/strings/letter_case.def"


def ranges(mapping):
    """(first, last, distance, step) of code points whose other case is equally far, in order and not overlapping."""
    rows = []
    for code in range(0x110000):
        other = mapping(chr(code))
        if len(other) != 1 or ord(other) == code:
            continue
        distance = ord(other) - code
        if rows and rows[-1][2] == distance:
            first, last, _, step = rows[-1]
            gap = code - last
            if gap <= 2 and (first == last or gap == step):
                rows[-1] = (first, code, distance, gap)
                continue
        rows.append((code, code, distance, 1))
    return rows


def text():
    lines = [
        "// Code points that have another case: first, last, distance to it, step between them.",
        f"// Unicode {unicodedata.unidata_version}; written by python -m scripts.letter_case.",
    ]
    for name, mapping in (("LATHE_TO_LOWER", str.lower), ("LATHE_TO_UPPER", str.upper)):
        lines += [f"{name}({a:#x}, {b:#x}, {d}, {s})" for a, b, d, s in ranges(mapping)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
