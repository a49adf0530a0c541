"""All checks, in the order in which they are made."""

from __future__ import annotations

from typing import Final

from bridge.adapters.doctor import brokers, files, machine, rights, topics, traces, transactions
from bridge.adapters.doctor.visit import Check

CHECKS: Final = (
    Check(id="config", run=files.configuration),
    Check(id="mappings", run=files.mappings, needs=("config",)),
    Check(id="secrets", run=files.secrets, needs=("config",)),
    Check(id="data", run=files.data_folder, needs=("config",)),
    Check(id="appliance", run=machine.appliance, needs=("config",)),
    Check(id="names", run=machine.names, needs=("config",)),
    Check(id="ports", run=machine.ports, needs=("config",)),
    Check(id="traces", run=traces.traces, needs=("config",)),
    Check(id="java", run=machine.java, needs=("config",)),
    Check(id="kafka", run=brokers.reachable, needs=("config",)),
    Check(id="version", run=brokers.version, needs=("kafka",)),
    Check(id="limits", run=brokers.limits, needs=("kafka",)),
    Check(id="acls", run=rights.rights, needs=("kafka", "mappings")),
    Check(id="own-topics", run=topics.own_topics, needs=("kafka",)),
    Check(id="mapped-topics", run=topics.mapped_topics, needs=("kafka", "mappings")),
    Check(id="transactions", run=transactions.hanging, needs=("kafka", "mappings")),
    Check(id="clock", run=transactions.clock, needs=("kafka",)),
    Check(id="clones", run=machine.clones, needs=("appliance",)),
    Check(id="destinations", run=machine.destinations, needs=("appliance",)),
    Check(id="streams", run=machine.streams, needs=("appliance",)),
)
