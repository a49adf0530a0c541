"""One visit of the doctor: checks in order, each with its deadline, none after a failed need."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from confluent_kafka import KafkaException
from msgspec import Struct
from msgspec.structs import replace

from bridge.adapters.doctor.cluster import Cluster
from bridge.adapters.doctor.finding import Finding, Result, fail, skip
from bridge.config import Config
from bridge.core.mapping_rules import Mappings
from bridge.model.errors import BridgeError, ConfigError

Answer = TypeVar("Answer")

WHOLE_S: Final = 18.0
CHECK_S: Final = 5.0


class Visit:
    """What earlier checks have learned."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.config = Config()
        self.mappings = Mappings()
        self.status: dict[str, Any] | None = None  # of the running appliance
        self.cluster: Cluster | None = None

    @property
    def embedded(self) -> bool:
        return "bootstrap.servers" not in self.config.kafka

    @property
    def kafka(self) -> Cluster:
        assert self.cluster is not None  # the check `kafka` is needed by whoever asks
        return self.cluster


class Check(Struct, frozen=True, kw_only=True):
    id: str
    run: Callable[[Visit], Iterable[Finding]]
    needs: tuple[str, ...] = ()
    seconds: float = CHECK_S


def examine(visit: Visit, checks: Sequence[Check], whole_s: float = WHOLE_S) -> Iterator[Finding]:
    """Findings as they come. What needs a check that failed or was skipped is skipped too."""
    end = time.monotonic() + whole_s
    missing: set[str] = set()
    for check in checks:
        findings = _findings(check, visit, missing, end - time.monotonic())
        results = {finding.result for finding in findings}
        if Result.FAIL in results or results == {Result.SKIP}:
            missing.add(check.id)
        for finding in findings:
            yield replace(finding, id=check.id)


def _findings(check: Check, visit: Visit, missing: set[str], left_s: float) -> list[Finding]:
    for need in check.needs:
        if need in missing:
            return [skip(f"not looked at: the check '{need}' comes first")]
    seconds = min(check.seconds, left_s)
    if seconds <= 0:
        return [skip("not looked at: the time is up", mend="mend what is slow, then run it again")]
    try:
        return within(seconds, lambda: list(check.run(visit)))
    except TimeoutError:
        return [fail(f"no answer within {seconds:.0f} s", mend="see whether what it asks hangs")]
    except ConfigError as error:
        found = ": ".join(filter(None, (error.where, error.what)))
        return [fail(found, mend=error.mend or "correct it")]
    except BridgeError as error:
        found, _, mend = str(error).partition("; ")
        return [fail(found, mend=mend or "see the log")]
    except KafkaException as error:
        return [fail(f"Kafka says: {error.args[0].str()}", mend="see the brokers' logs")]


class _Call(Generic[Answer]):
    """Runs beside us, as a daemon: a call that hangs must not keep the process alive."""

    def __init__(self, call: Callable[[], Answer]) -> None:
        self._call = call
        self._answer: list[Answer] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answer.append(self._call())
        except BaseException as error:
            self._error = error

    def answer(self, seconds: float) -> Answer:
        self._thread.join(max(seconds, 0.0))
        if self._thread.is_alive():
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._answer[0]


def within(seconds: float, call: Callable[[], Answer]) -> Answer:
    """The call's answer, or TimeoutError."""
    return _Call(call).answer(seconds)


def side_by_side(
    seconds: float, calls: Sequence[Callable[[], Answer]], late: Callable[[int], Answer]
) -> list[Answer]:
    """The answers in order; `late` makes up for one that did not come in time."""
    end = time.monotonic() + seconds
    answers = []
    for number, call in enumerate([_Call(call) for call in calls]):
        try:
            answers.append(call.answer(end - time.monotonic()))
        except TimeoutError:
            answers.append(late(number))
    return answers
