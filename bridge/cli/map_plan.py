"""`msmq-bridge map plan` and `map apply`: the cluster as the mappings want it."""

from __future__ import annotations

import http.client
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console

from bridge.adapters.config_files import load_config
from bridge.adapters.mapping_files import load_mappings
from bridge.adapters.net.admin_client import (
    Answer,
    NotRunning,
    ask,
    credentials,
    not_let_in,
    object_in,
    trusted,
)
from bridge.adapters.runtime import RUNTIME_FILE, find_admin_url
from bridge.cli.options import ConfigOption, MappingsOption
from bridge.cli.output import Output, OutputOption, console, show
from bridge.cli.plan_text import applied, print_outcomes, print_plan
from bridge.config import Config
from bridge.core.plan import Options, Plan
from bridge.core.plan_data import described
from bridge.model.errors import BridgeError, Unavailable

if TYPE_CHECKING:  # the Kafka client is loaded by the commands that talk to Kafka
    from bridge.adapters.kafka.cluster import Cluster, Outcome

CHANGES: Final = 2
RELOAD_TIMEOUT_S: Final = 60.0
SEEN_TIMEOUT_S: Final = 10.0
SEEN_CHECK_S: Final = 0.2
MAX_ANSWER: Final = 16 * 1024 * 1024

PartitionsOption = Annotated[
    int | None,
    typer.Option(
        "--partitions", min=1, max=100_000, help="Of a topic; else new ones as the cluster has it."
    ),
]
ReplicationOption = Annotated[
    int | None,
    typer.Option(
        "--replication", min=1, max=10_000, help="Copies of a topic; else as the cluster has it."
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Also what breaks the order of live streams.")
]


class OrderBreaks(BridgeError):
    """The appliance would have to break the order of live streams; `queues` says of which."""

    def __init__(self, queues: Sequence[dict[str, str]]) -> None:
        self.queues = queues
        named = ", ".join(f"{q.get('queue', '?')} ({q.get('reason', '?')})" for q in queues)
        super().__init__(
            f"the appliance keeps its mappings, live streams would lose their order: {named}; "
            "add --force to switch anyway"
        )


class ApplyFailed(BridgeError):
    """Some changes were made, some not."""


class Reloaded(msgspec.Struct, frozen=True):
    """What a running appliance did with its mapping files."""

    applied: tuple[str, ...] = ()
    unchanged: int = 0
    notes: tuple[str, ...] = ()


def register(map_app: typer.Typer) -> None:
    map_app.command("plan")(plan)
    map_app.command("apply")(apply)


def plan(
    config: ConfigOption = None,
    mappings: MappingsOption = None,
    partitions: PartitionsOption = None,
    replication: ReplicationOption = None,
    force: ForceOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Compare the mappings with the cluster: exit code 0 if all is well, 2 if something differs.

    Example: msmq-bridge map plan --config bridge.yaml -o json
    """
    options = Options(partitions=partitions, replication=replication, force=force)
    drawn, _ = _draw(load_config(config), mappings, options)
    if output is Output.TABLE:
        print_plan(drawn, console())
    else:
        show(described(drawn), output)
    if drawn.changes:
        raise typer.Exit(CHANGES)


def apply(
    config: ConfigOption = None,
    mappings: MappingsOption = None,
    partitions: PartitionsOption = None,
    replication: ReplicationOption = None,
    force: ForceOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Do what `map plan` shows, then have the running appliance switch to the mappings.

    Example: msmq-bridge map apply --config bridge.yaml --yes
    """
    settings = load_config(config)
    options = Options(partitions=partitions, replication=replication, force=force)
    drawn, cluster = _draw(settings, mappings, options)
    asking = bool(drawn.to_do) and not yes and sys.stdin.isatty()
    if output is Output.TABLE:
        print_plan(drawn, console())
    elif asking:
        print_plan(drawn, Console(stderr=True, highlight=False, markup=False, emoji=False))
    if asking:
        _confirm()
    outcomes = cluster.execute(drawn.to_do)
    if outcomes and not any(outcome.error for outcome in outcomes):
        _wait_until_seen(settings, mappings, options)
    told, problem = _tell(settings, mappings, outcomes, force=force)
    if output is Output.TABLE:
        print_outcomes(outcomes, told)
    else:
        show(applied(drawn, outcomes, told), output)
    if problem is not None:
        raise problem


def _wait_until_seen(config: Config, mappings: Path | None, options: Options) -> None:
    """A broker may answer from before the change for a moment; whoever looks next should not."""
    deadline = time.monotonic() + SEEN_TIMEOUT_S
    while _draw(config, mappings, options)[0].to_do and time.monotonic() < deadline:
        time.sleep(SEEN_CHECK_S)


def _confirm() -> None:
    """On stderr, all of it: typer's own prompt leaves a blank on stdout."""
    typer.echo("Make these changes? [y/N]: ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise typer.Abort


def _draw(config: Config, mappings: Path | None, options: Options) -> tuple[Plan, Cluster]:
    from bridge.adapters.kafka.cluster import Cluster, cluster_settings
    from bridge.adapters.kafka.planning import draw

    rules = load_mappings(mappings or config.mappings, reserved=f"{config.topic_prefix}.")
    cluster = Cluster(cluster_settings(config))
    return draw(config, rules, cluster, options), cluster


# -- the running appliance --------------------------------------------------------------------


def _tell(
    config: Config, mappings: Path | None, outcomes: Sequence[Outcome], *, force: bool
) -> tuple[dict[str, object], BridgeError | None]:
    """What became of the appliance, and the error to end with."""
    failed = [outcome for outcome in outcomes if outcome.error]
    if failed:
        first = f"{failed[0].change.topic}: {failed[0].error}"
        counts = f"{len(failed)} of {len(outcomes)} changes failed"
        problem = ApplyFailed(
            f"{counts}, first {first}; run 'msmq-bridge map plan' to see the rest"
        )
        return {"state": "not told", "why": "the cluster is not ready for it"}, problem
    if mappings is not None and mappings.resolve() != config.mappings.resolve():
        return {"state": "not told", "why": f"it reads {config.mappings}"}, None
    if config.listen.admin is None:
        return {"state": "not told", "why": "listen.admin is off; restart it"}, None
    try:
        reloaded = reload(config, force)
    except OrderBreaks as error:
        return {"state": "refused", "breaks_order": list(error.queues)}, error
    except BridgeError as error:
        return {"state": "failed", "why": str(error)}, error
    if reloaded is None:
        return {"state": "not running"}, None
    told = msgspec.structs.asdict(reloaded)
    if not reloaded.notes:
        del told["notes"]
    return {"state": "reloaded", **told}, None


def reload(config: Config, force: bool) -> Reloaded | None:
    """Have the appliance of this configuration read its mappings again; None if none is running."""
    if config.listen.admin == 0 and not (config.data / RUNTIME_FILE).exists():
        return None
    url = find_admin_url(config)
    headers = {"Content-Length": "0", **credentials(config)}
    path = f"/api/mappings/reload?force={force:d}"
    try:
        answer = ask(url, "POST", path, headers, RELOAD_TIMEOUT_S, context=trusted(config))
        if answer.status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
            raise not_let_in(url, config, "write")
        return _understood(url, answer)
    except NotRunning:
        return None


def _understood(url: str, answer: Answer) -> Reloaded:
    data, status = object_in(answer, url), answer.status
    if status == http.client.OK:
        applied = tuple(map(str, data.get("applied", ())))
        notes = tuple(str(note) for note in data.get("notes", ()))
        return Reloaded(applied, int(data.get("unchanged", 0)), notes)
    if status == http.client.CONFLICT and data.get("breaks_order"):
        raise OrderBreaks(data["breaks_order"])
    why = data.get("error", f"it answers {status}")
    raise Unavailable(f"the appliance at {url} keeps its mappings: {why}")
