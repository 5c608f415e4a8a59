"""One graph by all parties, each held against the truth."""

from dataclasses import dataclass, field

import numpy as np

from tests.random_graphs import truth
from tests.random_graphs.explained import explanation, is_deadly
from tests.random_graphs.growing import grown
from tests.random_graphs.parties import OURS, PARTIES, NoAnswer, answer, one_node


@dataclass
class Outcome:
    answered: list = field(default_factory=list)
    explained: list = field(default_factory=list)  # reasons
    findings: list = field(default_factory=list)  # sentences
    operators: list = field(default_factory=list)


def differences(outputs, got):
    if len(got) != len(outputs):
        return [f"{len(got)} outputs, wanted {len(outputs)}"]
    said = [(v.name, truth.difference(y, v.data, v.dtype)) for v, y in zip(outputs, got, strict=True)]
    return [f"{name}: {what}" for name, what in said if what]


def blamed(graph, model, party):
    """The nodes that a party gets wrong alone, given true inputs: (node, arrays it reads, what differs)."""
    found = []
    values = {v.name: graph.stored(v) for v in [*graph.inputs, *graph.constants]}
    for index, node in enumerate(graph.nodes):
        values |= {v.name: graph.stored(v) for v in node.outputs}
        alone, feeds = one_node(model, index, values)
        try:
            got = answer(party, alone, feeds)
        except NoAnswer:
            continue
        if said := differences(node.outputs, got):
            found.append((alone.graph.node[0], [v and graph.stored(v) for v in node.inputs], said[0]))
    return found


def above(graph, model, outputs):
    """The nodes that the outputs are made from: (node, arrays it reads)."""
    wanted, found = {v.name for v in outputs}, []
    for node, made in zip(reversed(graph.nodes), reversed(model.graph.node), strict=True):
        if wanted & {v.name for v in node.outputs}:
            wanted |= {v.name for v in node.inputs if v}
            found.append((made, [v and graph.stored(v) for v in node.inputs]))
    return found


def compared(seed, index):
    graph = grown(seed, index)
    outputs = graph.results()
    model = graph.model(outputs)
    outcome = Outcome(operators=[n.op for n in graph.nodes])
    feeds = graph.feeds()
    for party in PARTIES if not graph.special else OURS:  # the others' NaN are their own
        if any(is_deadly(party, n.op, [v and graph.stored(v) for v in n.inputs]) for n in graph.nodes):
            continue
        try:
            said = differences(outputs, answer(party, model, feeds, drawn=(seed, index)))
        except NoAnswer:
            continue
        except Exception as error:  # noqa: BLE001 (a refusal of Lathe's is a finding)
            said = [f"{type(error).__name__}: {str(error)[:500]}"]
        outcome.answered.append(party)
        if not said:
            continue
        if party in OURS:
            outcome.findings.append(f"{party}: {said[0]}")
            continue
        nodes = blamed(graph, model, party)
        wrong = [v for v in outputs if any(line.startswith(f"{v.name}: ") for line in said)]
        rows = [explanation(party, node, arrays) for node, arrays, _ in nodes]
        if nodes and all(rows):
            outcome.explained += [row.reason for row in rows]
            continue
        for (node, arrays, what), row in zip(nodes, rows, strict=True):
            if not row:
                shapes = [f"{a.dtype}{list(a.shape)}" if a is not None else "-" for a in arrays]
                outcome.findings.append(f"{party}, {node.op_type} alone of {', '.join(shapes)}: {what}")
        if not nodes:
            # Memory that a party left unwritten holds something else in every run; what it rounds may add up.
            rows = [explanation(party, node, arrays) for node, arrays in above(graph, model, wrong)]
            if any(rows):
                outcome.explained += [row.reason for row in rows if row][:1]
                continue
            outcome.findings.append(f"{party}: {said[0]} (no node alone)")
    return outcome


def written(seed, index, folder):
    """The model and its inputs as files, for the `lathe` command."""
    graph = grown(seed, index)
    model = graph.model(graph.results())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{model.graph.name}.onnx"
    path.write_bytes(model.SerializeToString())
    np.savez(path.with_suffix(".npz"), **graph.feeds())
    return path
