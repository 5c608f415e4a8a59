"""Worker process: compares graphs. A request is (seed, index)."""

from tests.random_graphs.compare import compared
from tests.support import paths
from tests.support.worker import serve

paths.make_importable()

if __name__ == "__main__":
    serve(lambda request: vars(compared(*request)))
