"""Trace: what was done to a schedule, as instructions that can be looked at, changed and done again."""

import json
import re

from .. import _lathe
from ..errors import ScheduleError
from ..ir.node import show_text

# Instructions that change nothing: without a use of their outputs they may be left out.
_LOOKING = ("get_", "sample_")


def _handles(value):
    """The handles in an instruction's input or output: pairs of a kind and a number."""
    if isinstance(value, (list, tuple)):
        if len(value) == 2 and value[0] in ("loop", "block", "expr") and isinstance(value[1], int):
            return [tuple(value)]
        return [handle for item in value for handle in _handles(item)]
    return []


class InstructionKind(str):
    """What an instruction is called, "split"."""

    __slots__ = ()

    @property
    def name(self):
        """The same."""
        return str(self)


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


class Trace:
    """What was done to a schedule: instructions, and for each the statement that does it."""

    def __init__(self, instructions, text):
        self._instructions = [Instruction(row) for row in instructions]
        self._lines = [line for line in text.splitlines() if line]

    @property
    def insts(self):
        """The instructions, in order."""
        return list(self._instructions)

    @property
    def decisions(self):
        """What sampling instructions drew, by the number of the instruction."""
        rows = enumerate(self._instructions)
        return {number: row["attrs"]["decision"] for number, row in rows if "decision" in row["attrs"]}

    # ---- changed traces; the trace itself stays ----

    def _of(self, numbers):
        made = Trace([], "")
        made._instructions = [self._instructions[number] for number in numbers]
        made._lines = [self._lines[number] for number in numbers]
        return made

    def with_decision(self, inst, decision, remove_postproc=False):
        """The trace with another decision; `inst` is an instruction of insts, or its number."""
        number = inst if isinstance(inst, int) else next(
            (index for index, own in enumerate(self._instructions) if own == inst), None)  # fmt: skip
        if number is None or number not in self.decisions:
            raise ScheduleError("only a sampling instruction of this trace has a decision")
        made = self._of(range(max(self._searched(remove_postproc), number + 1)))
        row = made._instructions[number]
        decision = [int(item) for item in decision] if isinstance(decision, (list, tuple)) else int(decision)
        made._instructions[number] = Instruction({**row, "attrs": {**row["attrs"], "decision": decision}})
        made._lines[number] = re.sub(r"decision=(\[[^\]]*\]|-?\d+)", f"decision={decision}", self._lines[number])
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
            used |= {handle for part in (row["inputs"], list(row["attrs"].values())) for handle in _handles(part)}
        return self._of(kept[::-1])

    def pop(self):
        """Takes the last instruction away and gives it; None of an empty trace."""
        if not self._instructions:
            return None
        self._lines.pop()
        return self._instructions.pop()

    # ---- as text and data ----

    def as_python(self, remove_postproc=False):
        """One statement a line; Trace.from_python reads them. Postprocessing is what comes after enter_postproc."""
        return self._lines[: self._searched(remove_postproc)] if remove_postproc else list(self._lines)

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
        _lathe.replay_trace(sch._state, "\n".join(trace._lines))

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
        return cls([], lines if isinstance(lines, str) else "\n".join(lines))

    def show(self, *args, **options):
        """Prints the trace."""
        show_text(str(self))

    def __len__(self):
        return len(self._instructions)

    def __str__(self):
        return "# from lathe import tir\ndef apply_trace(sch: tir.Schedule) -> None:\n" + (
            "\n".join("  " + line for line in self._lines) or "  pass"
        )

    __repr__ = __str__
