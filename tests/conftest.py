"""Options and fixtures of the whole-system tests. The compiler is never skipped: a test that misses it fails."""

import pytest

from tests.support import paths
from tests.support.backends import BACKENDS
from tests.support.command import Lathe

paths.make_importable()


def pytest_addoption(parser):
    group = parser.getgroup("lathe")
    group.addoption(
        "--backend", choices=sorted(BACKENDS), default="lathe",
        help="what runs the models; others than lathe only validate the tests themselves",
    )  # fmt: skip
    group.addoption("--seed", type=int, default=1, help="seed of the random tests")
    group.addoption("--count", type=int, default=None, help="random cases for each operator")
    group.addoption("--full", action="store_true", help="also run the tests marked full")


def pytest_configure(config):
    config.addinivalue_line("markers", "full: needs minutes or PyTorch; runs only with --full (./dev check --full)")


def pytest_collection_modifyitems(config, items):
    """Tests marked full are deselected, not skipped: `./dev check --full` passes --full and runs them all."""
    if config.getoption("--full"):
        return
    kept = [item for item in items if "full" not in item.keywords]
    dropped = [item for item in items if "full" in item.keywords]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


@pytest.fixture(scope="session")
def backend(request):
    return request.config.getoption("--backend")


@pytest.fixture(scope="session")
def seed(request):
    return request.config.getoption("--seed")


@pytest.fixture(scope="session")
def lathe_cli():
    assert paths.LATHE.is_file(), f"{paths.LATHE.name} is not built: run ./dev build"
    return Lathe()


@pytest.fixture(scope="session")
def lathe():
    """The Python package. Importing it is part of the test: it fails where it is missing."""
    import lathe

    return lathe


@pytest.fixture(scope="session")
def digits_artifact(lathe_cli, tmp_path_factory):
    """The trained digits model compiled by the command to a shared library."""
    artifact = tmp_path_factory.mktemp("digits") / "digits.so"
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", artifact)
    return artifact
