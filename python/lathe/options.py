"""Options of lathe.compile and lathe.build, as the extension takes them."""

import os

from . import _lathe


def debug_text(debug_info):
    """The file or folder for the kernels' programs that the option asks for, else an empty text."""
    if not debug_info:
        return ""
    return _lathe.debug_text_folder() if debug_info is True else os.fspath(debug_info)


def dim_texts(dims):
    """As the option --dim has them."""
    return {str(name): sizes if isinstance(sizes, str) else str(int(sizes)) for name, sizes in (dims or {}).items()}


def count(value, name):
    """A number of threads, 0 for None."""
    if value is None:
        return 0
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    return int(value)
