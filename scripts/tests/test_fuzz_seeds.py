"""The seeds in the repository are those that the script writes."""

import pytest

from scripts.fuzz_seeds import SEEDS
from scripts.setup import ROOT


@pytest.mark.parametrize("folder", SEEDS)
def test_seeds_are_written_by_the_script(folder):
    made = SEEDS[folder]()
    assert {path.name: path.read_bytes() for path in (ROOT / folder).iterdir()} == made
    assert len(set(made.values())) == len(made) >= 10
