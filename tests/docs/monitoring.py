"""An exposition in which every metric has a sample with all of its labels, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from bridge.adapters.telemetry import TRANSPORTS, Telemetry
from bridge.app import Appliance
from bridge.config import Config, ListenConfig

SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


class Family(NamedTuple):
    name: str  # as it is asked for: with _total
    kind: str
    labels: frozenset[str]

    @property
    def series(self) -> dict[str, frozenset[str]]:
        """What an expression may name, and its labels."""
        if self.kind != "histogram":
            return {self.name: self.labels}
        buckets = {f"{self.name}_bucket": self.labels | {"le"}}
        return buckets | {f"{self.name}{end}": self.labels for end in ("_sum", "_count")}


def exercised(folder: Path) -> Telemetry:
    """Of an appliance as it is put together, and as it counts."""
    config = Config(
        listen=ListenConfig(admin=0), data=folder, mappings=folder, kafka={"bootstrap.servers": "x"}
    )
    telemetry = Appliance(config).telemetry
    telemetry.session_opened()
    telemetry.session_closed("idle")
    telemetry.message("rejected", "NACK_BAD_DST_Q")
    telemetry.refusal("malformed")
    telemetry.transaction("committed", messages=1, seconds=0.1)
    telemetry.retained = lambda: [("private$\\orders", 1, 1)]
    telemetry.head_seconds = lambda _queue: 1.0
    for transport in TRANSPORTS:
        telemetry.ack_seconds[transport].observe(0.1)
    return telemetry


def families(telemetry: Telemetry) -> dict[str, Family]:
    found = {}
    for family in text_string_to_metric_families(telemetry.exposition()[0].decode()):
        labels = {name for sample in family.samples for name in sample.labels} - {"le"}
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = Family(name, family.type, frozenset(labels))
    return found
