"""Seeds of the fuzz targets that no library of others' writes: `python -m scripts.fuzz_seeds` writes them anew."""

import io

import numpy as np

from .setup import ROOT

HEADER = 48  # bytes before the object in a kernel's file: src/codegen/llvm/kernel_cache.cpp


def kernel_cache():
    """An object: its length, its bytes, and what becomes of its file: pairs of a place and a byte, where it is cut."""
    code = bytes(range(1, 33))
    kept = bytes([len(code)]) + code
    return {
        "kept": kept,
        "empty": b"\0\0",
        "other_magic": kept + bytes([0, ord("M")]),
        "other_key": kept + bytes([8, 7, 16, 7]),
        "longer_than_it_is": kept + bytes([24, 255]),
        "other_hash": kept + bytes([32, 1, 40, 1]),
        "other_object": kept + bytes([HEADER + 4, 0, HEADER + 31, 9]),
        "grown": kept + bytes([HEADER + len(code), 5]),
        "cut_in_its_header": kept + bytes([HEADER - 3]),
        "cut_in_its_object": kept + bytes([HEADER + 1, 3, HEADER + 8]),
    }


def npy():
    """NumPy's own files in each version and order, and headers that say what is not there."""

    def saved(array, version=None):
        file = io.BytesIO()
        np.lib.format.write_array(file, np.asarray(array), version)
        return file.getvalue()

    def said(header, payload=b""):
        text = header.encode("latin1").ljust(117) + b"\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + payload

    shaped = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }"
    return {
        "rows": saved(np.arange(6, dtype=np.float32).reshape(2, 3)),
        "columns": saved(np.asfortranarray(np.arange(24, dtype=np.int16).reshape(2, 3, 4))),
        "scalar": saved(np.float64(1.5)),
        "nothing": saved(np.zeros((3, 0, 2), np.uint8)),
        "booleans": saved(np.array([True, False])),
        "version_2": saved(np.arange(3), (2, 0)),
        "version_3": saved(np.arange(3), (3, 0)),
        "big_endian": saved(np.arange(3, dtype=">i4")),
        "text": saved(np.array(["a", "bc"])),
        "product_that_wraps": said(shaped % (1 << 61)),
        "product_past_signed_numbers": said(shaped % f"{1 << 59}, 3, 0"),
        "negative": said(shaped % -1, bytes(8)),
        "no_shape": said("{'descr': '<f8', 'fortran_order': False}", bytes(8)),
    }


SEEDS = {
    "src/codegen/llvm/kernel_cache_fuzz_seeds": kernel_cache,
    "tools/lathe/arrays/npy_fuzz_seeds": npy,
}


def main():
    """Writes every seed."""
    for folder, make in SEEDS.items():
        (ROOT / folder).mkdir(exist_ok=True)
        for name, content in make().items():
            (ROOT / folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
