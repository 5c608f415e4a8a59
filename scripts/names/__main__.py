"""python -m scripts.names [--check]"""

import sys

from scripts import names

found = names.sections()
wrong = list(names.problems(found))
print("\n".join(wrong))
if "--check" in sys.argv[1:]:
    stale = list(names.stale(names.TABLE.read_text(), found))
    if names.REASONS.read_text() != names.reasons(found):
        stale.append("python/lathe/left_out.py is not what vocabulary.txt says")
    print("\n".join(stale) or "docs/names.md is fresh")
    sys.exit(bool(wrong or stale))
names.TABLE.write_text(names.table(found))
names.REASONS.write_text(names.reasons(found))
sys.exit(bool(wrong))
