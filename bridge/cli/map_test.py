"""`msmq-bridge map test`: the record that a message would become, before it is sent."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from bridge.adapters.config_files import load_config
from bridge.adapters.mapping_files import load_mappings
from bridge.adapters.mapping_tests import (
    Case,
    Difference,
    Suite,
    as_lines,
    read_suite,
    suites_beside,
)
from bridge.adapters.samples import Sample, first_samples
from bridge.adapters.yaml_structs import Gathering
from bridge.cli.options import ConfigOption, MappingsOption
from bridge.cli.output import Output, OutputOption, cell, console, plain, show, table
from bridge.core.admission import Policy
from bridge.core.mapping_rules import Mappings
from bridge.core.ports import Record
from bridge.core.trial import Assumed, Fate, Trial, readable
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid

FAILED: Final = 1
CUT: Final = 400  # characters of a value in a table
_DEFAULT: Final = Assumed()


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What the appliance would decide by."""

    path: Path
    mappings: Mappings
    local: Guid | None = None
    reserved: str = ""
    policy: Policy = Policy()

    def trial(self, assumed: Assumed) -> Trial:
        return Trial(
            self.mappings,
            local=self.local,
            reserved=self.reserved,
            policy=self.policy,
            assumed=assumed,
        )


def register(map_app: typer.Typer) -> None:
    map_app.command("test")(try_mappings)


def try_mappings(
    samples: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SAMPLE]...",
            help="A message as YAML, a packet or msmq.wire as hex or base64, a pcap or pcapng; "
            "- is standard input. Without one the *.test.yaml beside the mappings are run.",
        ),
    ] = None,
    config: ConfigOption = None,
    mappings: MappingsOption = None,
    body: Annotated[
        Path | None,
        typer.Option("--body", help="The record's value, when the sample is its msmq.wire."),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            min=1,
            max=100_000,
            show_default=str(_DEFAULT.partitions),
            help="How many each topic has.",
        ),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-bytes",
            min=0,
            show_default=str(_DEFAULT.max_bytes),
            help="The largest record that a topic takes.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=100_000, help="Show at most so many messages.")
    ] = 100,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the records that sample messages would become, or run the tests of the mappings.

    Example: msmq-bridge map test order.yaml capture.pcapng --config bridge.yaml -o json
    """
    setting = _setting(config, mappings)
    if samples:
        assumed = Assumed(
            partitions=_DEFAULT.partitions if partitions is None else partitions,
            max_bytes=_DEFAULT.max_bytes if max_bytes is None else max_bytes,
        )
        _show_samples(setting.trial(assumed), samples, body, limit, output)
        return
    for option, given in (
        ("--body", body),
        ("--partitions", partitions),
        ("--max-bytes", max_bytes),
    ):
        if given is not None:
            what = "goes with a SAMPLE"
            raise ConfigError(what, where=option, mend="a test file has its own 'assume:'")
    if not _run_tests(setting, output):
        raise typer.Exit(FAILED)


def _setting(config: Path | None, mappings: Path | None) -> Setting:
    """As the appliance has it; with `--mappings` alone nothing is known of an appliance."""
    if config is None and mappings is not None:
        return Setting(path=mappings, mappings=load_mappings(mappings))
    settings = load_config(config)
    path, reserved = mappings or settings.mappings, f"{settings.topic_prefix}."
    manager = settings.queue_manager
    return Setting(
        path=path,
        mappings=load_mappings(path, reserved=reserved),
        local=manager.id,
        reserved=reserved,
        policy=Policy(clock_skew_s=int(manager.clock_skew_s), quota_kb=manager.quota_kb),
    )


# -- samples ----------------------------------------------------------------------------------


def _show_samples(
    trial: Trial, paths: list[Path], body: Path | None, limit: int, output: Output
) -> None:
    found, is_more = first_samples(paths, body, limit)
    fates = [(sample, trial.run(sample.message)) for sample in found]
    if output is Output.TABLE:
        for sample, fate in fates:
            _print_fate(sample, fate)
    else:
        show([described(sample, fate) for sample, fate in fates], output)
    if is_more:
        sys.stderr.write(f"there are more messages than {limit}; --limit shows them\n")


def described(sample: Sample, fate: Fate) -> dict[str, Any]:
    """For programs: everything, whole."""
    about = {
        "sample": sample.where,
        "message_id": sample.message.id,
        "queue": fate.queue or None,
        "destination": sample.message.destination,
    }
    if not fate.accepted:
        code = fate.verdict.message_class
        refusal = {"class": fate.refused, "code": code, "reason": fate.verdict.reason}
        return about | {"refused": refusal}
    return about | {
        "records": [_record(record) for record in fate.records],
        "journal": [_record(record) for record in fate.journal],
        "claims": [
            {"store": claim.store or None, "path": claim.name, "size": len(claim.data)}
            for claim in fate.claims
        ],
    }


def _record(record: Record) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "key": None if record.key is None else readable(record.key),
        "timestamp": _moment(record.timestamp_ms),
        "headers": {name: readable(data) for name, data in record.headers.items()},
        "value": readable(record.value),
        "size": len(record.value),
    }


def _moment(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def _print_fate(sample: Sample, fate: Fate) -> None:
    if not fate.accepted:
        code = fate.verdict.message_class
        row = {
            "queue": fate.queue or None,
            "destination": sample.message.destination,
            "refused": f"{fate.refused} (0x{code:04x})" if code else fate.refused,
            "reason": fate.verdict.reason,
        }
        console().print(table(plain(row), sample.where))
        return
    for index, record in enumerate(fate.records):
        title = sample.where
        if len(fate.records) > 1:
            title += f", record {index + 1} of {len(fate.records)}"
        console().print(table(_rows(record, fate), title))


def _rows(record: Record, fate: Fate) -> dict[str, Any]:
    """For people: long values cut, headers as rows of their own."""
    made = _record(record)
    headers = made.pop("headers")
    rows = {"queue": fate.queue} | made | {"value": _cut(made["value"]), "size": made["size"]}
    if fate.journal:
        rows["journal"] = fate.journal[0].topic
    for claim in fate.claims:
        rows["claim"] = f"{claim.store or 'claims'}/{claim.name} ({len(claim.data)} bytes)"
    return rows | {f"  {name}": _cut(text, 80) for name, text in sorted(headers.items())}


def _cut(text: str, most: int = CUT) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


# -- tests ------------------------------------------------------------------------------------


def _run_tests(setting: Setting, output: Output) -> bool:
    files = suites_beside(setting.path)
    if not files:
        what, mend = "there are no *.test.yaml here", "write one, or name a SAMPLE"
        raise ConfigError(what, where=str(setting.path), mend=mend)
    gathering, suites = Gathering(), list[Suite]()
    for file in files:
        with gathering:
            suites.append(read_suite(file))
    gathering.check()
    results = [
        (case, case.differences(trial.run(case.message)))
        for suite in suites
        for trial in [setting.trial(suite.assumed)]
        for case in suite.cases
    ]
    failed = sum(bool(differences) for _, differences in results)
    if output is Output.TABLE:
        _print_results(results, failed)
    else:
        show({"ok": not failed, "tests": [_result(*each) for each in results]}, output)
    return not failed


def _print_results(results: list[tuple[Case, list[Difference]]], failed: int) -> None:
    out = console()
    for case, differences in results:
        sign = "FAILED" if differences else "ok    "
        place = f"{case.where.file}:{case.where.line}"
        line = cell(f"{sign} {place} {case.name}")
        line.stylize("red" if differences else "green", 0, len(sign))
        out.print(line, soft_wrap=True)
        for text in as_lines(differences):
            out.print(cell(f"       {text}"), soft_wrap=True)
    out.print(f"{len(results)} tests, {failed} failed")


def _result(case: Case, differences: list[Difference]) -> dict[str, Any]:
    return {
        "file": case.where.file,
        "line": case.where.line,
        "name": case.name,
        "ok": not differences,
        "differences": differences,
    }
