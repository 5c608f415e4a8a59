"""python -m scripts.names [--check]"""

import sys

from scripts import names

found = names.sections()
wrong = list(names.problems(found))
print("\n".join(wrong))
if "--check" in sys.argv[1:]:
    stale = list(names.stale(names.TABLE.read_text(), found))
    print("\n".join(stale) or "docs/names.md is fresh")
    sys.exit(bool(wrong or stale))
names.TABLE.write_text(names.table(found))
sys.exit(bool(wrong))
