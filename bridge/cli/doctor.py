"""`msmq-bridge doctor`: what is wrong with this set-up and how to mend it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import typer
from rich.console import Console
from rich.text import Text

from bridge.adapters.doctor.checks import CHECKS
from bridge.adapters.doctor.finding import Finding, Result
from bridge.adapters.doctor.visit import Visit, examine
from bridge.cli.options import ConfigOption
from bridge.cli.output import Output, OutputOption, cell, console, show

_STYLES: Final = {Result.OK: "green", Result.WARN: "yellow", Result.FAIL: "red", Result.SKIP: "dim"}
_RESULT_WIDTH: Final = 4
_ID_WIDTH: Final = max(len(check.id) for check in CHECKS)
_INDENT: Final = 6
_LEAST_WIDTH: Final = 30


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(config: ConfigOption = None, output: OutputOption = Output.TABLE) -> None:
    """Check this set-up: files, names, ports, Java, Kafka and its topics; writes nothing.

    Exit code 0 if nothing fails (warnings do not), 1 if something does.

    Example: msmq-bridge doctor --config bridge.yaml
    """
    findings: list[Finding] = []
    out = console()
    for finding in examine(Visit(config), CHECKS):
        findings.append(finding)
        if output is Output.TABLE:
            _print(out, finding)
    if output is Output.TABLE:
        out.print(_summary(findings))
    else:
        show(report(findings), output)
    if any(finding.result is Result.FAIL for finding in findings):
        raise typer.Exit(1)


def report(findings: Iterable[Finding]) -> dict[str, Any]:
    """`ok` tells what the exit code tells."""
    counts = Counter(finding.result for finding in findings)
    return {
        "ok": not counts[Result.FAIL],
        "counts": {result.value: counts[result] for result in Result},
        "findings": list(findings),
    }


def _print(out: Console, finding: Finding) -> None:
    """One line, and for what is not well how to mend it; as soon as it is known."""
    found = f"{finding.about}: {finding.found}" if finding.about else finding.found
    head = Text.assemble(
        (f"{finding.result.value:{_RESULT_WIDTH}}", _STYLES[finding.result]),
        f"  {finding.id:{_ID_WIDTH}}  ",
    )
    _print_block(out, head, cell(found))
    if finding.mend:
        _print_block(out, Text(" " * len(head)), Text.assemble("-> ", cell(finding.mend)))
    if finding.result in (Result.WARN, Result.FAIL):
        for command in finding.commands:  # in one piece, to be copied
            out.print(Text.assemble(" " * _INDENT, cell(command)), soft_wrap=True)


def _print_block(out: Console, head: Text, text: Text) -> None:
    width = max(out.width - len(head), _LEAST_WIDTH)
    for line in text.wrap(out, width):
        line.rstrip()
        out.print(Text.assemble(head, line), soft_wrap=True)
        head = Text(" " * len(head))


def _summary(findings: Iterable[Finding]) -> str:
    counts = Counter(finding.result for finding in findings)
    return ", ".join(f"{counts[result]} {result.value}" for result in Result)
