"""What is left of ranks that never ran: evidence from boards filled by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fixtures.doctor.evidence import Evidence, Over, RankEvidence
from tests.witness.boards import Boards

LOST = "Connection closed by peer [127.0.0.1]:51"


class Fallen(Boards):
    """A world that is over: issue operations, say how each rank ended, take the evidence."""

    def __init__(self, folder: Path, world_size: int) -> None:
        super().__init__(folder, world_size)
        self._ends: dict[int, dict[str, Any]] = {}

    def same(self, kind: str, where: str, **fields: Any) -> None:
        """One operation of all ranks, which ended."""
        for rank in self.all:
            self.issue(rank, kind, where=where, ends=True, **fields)

    def raised(self, rank: int, text: str = LOST, *, at_s: float = 0.0, operations: Any = ()) -> None:
        """A rank's end by an exception out of torch that named no operation, as where DDP waits in C++."""
        raised = {
            **{"type": "RuntimeError", "text": text, "traceback": text, "file": "/home/me/mine/train.py", "line": 30},
            **{"innermost_file": "/site/torch/autograd/graph.py", "first": None, "operation": None},
            "at_ns": int(at_s * 1e9),
        }
        self._ends[rank] = {"status": 1, "report": self._report(rank, raised=raised, operations=operations)}

    def named(self, rank: int, kind: str) -> None:
        """A rank's end by an exception that came out of its last operation, which Python waited for."""
        self.raised(rank)
        self._ends[rank]["report"]["raised"]["operation"] = {"kind": kind, "group": "default", "seq": 0, "where": ""}

    def died(self, rank: int, signal: int) -> None:
        """A rank's end by a signal: it leaves no report."""
        self._ends[rank] = {"status": -signal, "report": None}

    def finished(self, rank: int, operations: Any) -> None:
        """A rank's end as it should be."""
        self._ends[rank] = {"report": self._report(rank, operations=operations)}

    def exits(self, rank: int, status: int, where: str) -> None:
        """A rank that has asked for its end and is still about to end."""
        asked = {"status": status, "call": "sys.exit", "where": where}
        self._ends[rank] = {"status": None, "report": self._report(rank, exit=asked)}

    def alive(self, rank: int, stack: str, **errors: Any) -> None:
        """A rank that the doctor had to end."""
        self._ends[rank] = {
            **{"status": None, "ended_by_doctor": True, "stack": stack},
            "report": self._report(rank, finished=False, **errors),
        }

    def evidence(self) -> Evidence:
        """All of it; a rank of which nothing was said has finished."""
        usual = {"ended_by_doctor": False, "stack": "", "errors": "", "status": 0}
        ranks = [
            RankEvidence(
                rank=rank,
                pid=rank,
                view=self.board.view(rank),
                recent=self.board.recent(rank),
                **{**usual, "report": self._report(rank), **self._ends.get(rank, {})},
            )
            for rank in self.all
        ]
        return Evidence(
            over=Over.FAILED,
            duration_s=1.0,
            verdict=None,
            told_after_s=None,
            ranks=ranks,
            statuses=[one.status for one in ranks],
            num_expected=len(ranks),
        )

    def _report(self, rank: int, **fields: Any) -> dict[str, Any]:
        account = {"operations": {}, "bytes": {}, "wire_bytes": 0, "waited_ns": 0, "last_issued_ns": 0}
        return {
            **{"rank": rank, "world_size": len(self.all), "operations": [], "account": account, "parameters": []},
            **{"raised": None, "exit": None, "handling": None, "thread_error": None, "finished": True, "at_ns": 0},
            "clock": None,
            **fields,
        }
