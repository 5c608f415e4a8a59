"""The table of what may be the next node, and a graph grown by it."""

import numpy as np

from tests.random_graphs import computing, moving, sampled
from tests.random_graphs.graph import Graph, Rejected

ROWS = {**computing.ROWS, **moving.ROWS, **sampled.ROWS}
NAMES = list(ROWS)
WEIGHTS = np.array([{**computing.WEIGHTS, **moving.WEIGHTS, **sampled.WEIGHTS}.get(name, 1.0) for name in NAMES])
WEIGHTS /= WEIGHTS.sum()
LEAST, MOST = 3, 14
# What every node of a graph with NaN and infinities is: defined for these, by IEEE arithmetic or because it moves them.
SPECIAL = set(
    """
    Add Sub Mul Neg Abs Sqrt Relu LeakyRelu Where Min Max Floor Ceil Round Exp Tanh Reciprocal Sigmoid Reshape Transpose
    Concat Slice Split Pad Tile Gather Squeeze Unsqueeze Equal Less Greater LessOrEqual GreaterOrEqual Not And Or
    identities ReduceSum ReduceMax ReduceMin expand_to reshape_to Flatten Erf Softplus Sin Cos Clip MaxPool
""".split()
)


def grown(seed, index):
    """The graph of this number under a seed: always the same."""
    g = Graph(seed, index)
    g.pool += [g.fresh(g.shape_of_graph, g.float, constant=False)]
    wanted = g.integer(LEAST, MOST)
    while len(g.nodes) < wanted:
        name = NAMES[int(g.rng.choice(len(NAMES), p=WEIGHTS))]
        if g.special and name not in SPECIAL:
            continue
        before = len(g.nodes), list(g.pool), [v.uses for v in g.pool]
        try:
            ROWS[name](g)
        except Rejected:
            g.take_back(*before)
    return g
