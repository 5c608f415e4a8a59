"""Trace: what was done to a schedule, as instructions that can be looked at, changed and done again."""

import difflib
import json

from ... import _lathe
from ...errors import ScheduleError
from ...ir.node import show_text
from ..index_map import IndexMap

# Instructions that change nothing: without a use of their outputs they may be left out.
_LOOKING = ("get_", "sample_")


def _handles(value):
    """The handles in an instruction's input or output: pairs of a kind and a number."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] in ("loop", "block", "expr"):
        return [value]
    if isinstance(value, (list, tuple)):
        return [handle for item in value for handle in _handles(item)]
    return []


class InstructionKind(str):
    """What an instruction is called, "split"."""

    __slots__ = ()

    @property
    def name(self):
        """The same."""
        return str(self)

    @classmethod
    def get(cls, name):
        """The kind of that name. ScheduleError: there is none."""
        known = _lathe.instruction_kinds()
        if name not in known:
            near = difflib.get_close_matches(str(name), known, 1)
            raise ScheduleError(f"there is no instruction '{name}'" + (f", but '{near[0]}'" if near else ""))
        return cls(name)


class Instruction(dict):
    """One step of a trace: kind, inputs, attrs and outputs, as keys and as attributes."""

    __slots__ = ()

    @property
    def kind(self):
        """What it is called."""
        return InstructionKind(self["kind"])

    @property
    def inputs(self):
        """The handles that it takes."""
        return self["inputs"]

    @property
    def attrs(self):
        """Its other arguments, and the decision of a sampling."""
        return self["attrs"]

    @property
    def outputs(self):
        """The handles that it gives."""
        return self["outputs"]


def _row(inst):
    """An instruction with its handles and index maps as C++ takes them."""
    if not isinstance(inst, dict):
        raise TypeError(f"an instruction is a dict with kind, inputs, attrs and outputs, not {type(inst).__name__}")
    row = dict(inst)
    row.update((part, _plain(row[part])) for part in ("inputs", "attrs", "outputs") if part in row)
    return row


def _plain(value):
    if isinstance(value, IndexMap):
        return ("index_map", value.text)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item) for item in value)
    # A handle of a schedule.
    return (value.kind, value.index) if hasattr(value, "kind") and hasattr(value, "index") else value


def _decision(decision):
    return [int(item) for item in decision] if isinstance(decision, (list, tuple)) else int(decision)


def _decided(inst, decision):
    """The row of an instruction that draws this decision, its own where it is None."""
    row = _row(inst)
    if decision is None:
        return row
    if not str(row.get("kind")).startswith("sample_"):
        raise ScheduleError(f"only a sampling instruction has a decision, and '{row.get('kind')}' is none")
    return {**row, "attrs": {**row.get("attrs", {}), "decision": _decision(decision)}}


class Trace:
    """What was done to a schedule: instructions, which print as statements and can be done again.

    insts: the instructions, as `append` takes them. decisions: those of samplings, by the number of the instruction.
    """

    def __init__(self, insts=(), decisions=None):
        self._instructions = []
        self._extend(_decided(inst, (decisions or {}).get(number)) for number, inst in enumerate(insts))

    def _extend(self, rows):
        checked = _lathe.checked_trace([*self._instructions, *rows])
        self._instructions = [Instruction(row) for row in checked]

    @classmethod
    def of_rows(cls, rows):
        """The trace of instructions that C++ gave."""
        made = cls()
        made._instructions = [Instruction(row) for row in rows]
        return made

    @property
    def insts(self):
        """The instructions, in order."""
        return list(self._instructions)

    @property
    def decisions(self):
        """What sampling instructions drew, by the number of the instruction."""
        rows = enumerate(self._instructions)
        return {number: row["attrs"]["decision"] for number, row in rows if "decision" in row["attrs"]}

    def append(self, inst, decision=None):
        """Adds an instruction at the end.

        inst: one of `insts` of this or another trace, or Instruction(kind="split", inputs=[("loop", 3)],
        attrs={"factors": [None, 4]}, outputs=[("loop", 7), ("loop", 8)]); its inputs are outputs of earlier ones.
        decision: what a sampling instruction draws, in place of its own.
        ScheduleError: an unknown kind, a handle that no earlier instruction makes, a decision where none is taken.
        """
        self._extend([_decided(inst, decision)])

    # ---- changed traces; the trace itself stays ----

    def _of(self, numbers):
        return Trace.of_rows(self._instructions[number] for number in numbers)

    def with_decision(self, inst, decision, remove_postproc=False):
        """The trace with another decision; `inst` is an instruction of insts, or its number."""
        number = inst if isinstance(inst, int) else next(
            (index for index, own in enumerate(self._instructions) if own == inst), None)  # fmt: skip
        if number is None or number not in self.decisions:
            raise ScheduleError("only a sampling instruction of this trace has a decision")
        made = self._of(range(max(self._searched(remove_postproc), number + 1)))
        row = made._instructions[number]
        made._instructions[number] = Instruction({**row, "attrs": {**row["attrs"], "decision": _decision(decision)}})
        return made

    def _searched(self, remove_postproc):
        """How many instructions come before enter_postproc; all, where postprocessing stays."""
        kinds = [row["kind"] for row in self._instructions]
        return kinds.index("enter_postproc") if remove_postproc and "enter_postproc" in kinds else len(kinds)

    def simplified(self, remove_postproc=False):
        """The trace without lookups and samplings of which nothing is used."""
        used, kept = set(), []
        for number in reversed(range(self._searched(remove_postproc))):
            row = self._instructions[number]
            outputs = {handle for output in row["outputs"] for handle in _handles(output)}
            if row["kind"].startswith(_LOOKING) and not outputs & used:
                continue
            kept.append(number)
            used -= outputs
            used |= {handle for part in (row["inputs"], list(row["attrs"].values())) for handle in _handles(part)}
        return self._of(kept[::-1])

    def pop(self):
        """Takes the last instruction away and gives it; None of an empty trace."""
        if not self._instructions:
            return None
        return self._instructions.pop()

    # ---- as text and data ----

    def as_python(self, remove_postproc=False):
        """One statement a line; Trace.from_python reads them. Postprocessing is what comes after enter_postproc."""
        return _lathe.trace_text(self._instructions[: self._searched(remove_postproc)]).split("\n")[:-1]

    def as_json(self, remove_postproc=False):
        """The trace as lists and dicts that JSON can hold; apply_json_to_schedule reads them."""
        rows = json.loads(json.dumps(self._instructions))
        return [{**row, "text": line} for row, line in zip(rows, self.as_python(remove_postproc))]

    def apply_to_schedule(self, sch, remove_postproc=False, decision_provider=None):
        """Does it all again on another schedule.

        decision_provider(inst, inputs, attrs, decision): gives the decision of a sampling instruction.
        """
        trace = self._of(range(self._searched(True))) if remove_postproc else self
        if decision_provider is not None:
            for number, decision in trace.decisions.items():
                row = self._instructions[number]
                chosen = decision_provider(row, row["inputs"], row["attrs"], decision)
                trace = trace.with_decision(number, chosen)
        _lathe.replay_trace(sch._state, trace._instructions)

    @staticmethod
    def apply_json_to_schedule(json_obj, sch):
        """Does what as_json gave, on a schedule."""
        rows = json.loads(json_obj) if isinstance(json_obj, str) else json_obj
        if not isinstance(rows, list) or not all(isinstance(row, dict) and "text" in row for row in rows):
            raise ScheduleError("a trace as JSON is the list of instructions that as_json gives")
        Trace.from_python([str(row["text"]) for row in rows]).apply_to_schedule(sch)

    @classmethod
    def from_python(cls, lines):
        """The trace that as_python printed: its lines, or their text."""
        return cls.of_rows(_lathe.read_trace(lines if isinstance(lines, str) else "\n".join(lines)))

    def show(self, style=None, black_format=None):
        """Prints the trace, in colours where the output is a terminal or a notebook."""
        show_text(str(self))

    def __len__(self):
        return len(self._instructions)

    def __str__(self):
        return "# from lathe import tir\ndef apply_trace(sch: tir.Schedule) -> None:\n" + (
            "\n".join("  " + line for line in self.as_python()) or "  pass"
        )

    __repr__ = __str__
