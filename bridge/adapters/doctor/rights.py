"""What the brokers must allow us, and what they do. Transactional ids cannot be asked about."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from bridge.adapters.doctor.cluster import TopicState
from bridge.adapters.doctor.finding import Finding, fail, ok, skip, warn
from bridge.adapters.doctor.topics import all_names, own_names
from bridge.adapters.doctor.visit import Visit
from bridge.config import Config
from bridge.core.mapping_rules import Mappings

MAPPED: Final = ("Write", "Describe", "DescribeConfigs", "Read")  # Read: `trace` shows the record
OWN: Final = ("Read", "Write", "Describe", "DescribeConfigs")
CREATE: Final = "Create"
_API_NAMES: Final = {
    "Read": "READ",
    "Write": "WRITE",
    "Describe": "DESCRIBE",
    "DescribeConfigs": "DESCRIBE_CONFIGS",
    "Create": "CREATE",
}


def rights(visit: Visit) -> Iterator[Finding]:
    yield replace(_judge(visit), commands=tuple(acl_commands(visit)))


def _judge(visit: Visit) -> Finding:
    config = visit.kafka.broker_config(min(visit.kafka.brokers))
    if config is not None and not config.get("authorizer.class.name"):
        return ok("the brokers allow everything to everybody (no authorizer)")
    own, states = own_names(visit), visit.kafka.topics(all_names(visit))
    mend = "let somebody who may alter ACLs run the commands"
    lacking = {name: _lacks(s, OWN if name in own else MAPPED) for name, s in states.items()}
    if any(lacking.values()):
        listed = (f"{' and '.join(ops)} on {name}" for name, ops in lacking.items() if ops)
        return fail(f"not allowed: {', '.join(listed)}", mend=mend)
    if any(s.is_missing for s in states.values()) and not _may_create(visit):
        return warn("topics are missing, and we may not make any topic we like", mend=mend)
    there = [state for state in states.values() if not state.error]
    if not there or all(state.operations is None for state in there):
        return skip("the brokers do not say what is allowed; -o json lists the ACLs needed")
    return ok(
        f"all that is needed on {len(there)} topics; transactional ids and groups cannot be asked "
        "about, -o json lists all ACLs"
    )


def _lacks(state: TopicState, needed: tuple[str, ...]) -> list[str]:
    if state.error.endswith("AUTHORIZATION_FAILED"):
        return list(needed)
    if state.operations is None or state.error:
        return []
    return [name for name in needed if _API_NAMES[name] not in state.operations]


def _may_create(visit: Visit) -> bool:
    """On the cluster; a right by name or prefix cannot be asked about."""
    operations = visit.kafka.operations()
    return operations is None or "CREATE" in operations


def acl_commands(visit: Visit) -> list[str]:
    """Every ACL the appliance needs, as kafka-acls.sh takes it."""
    prefix = visit.config.topic_prefix
    own = own_names(visit)
    mapped = [name for name in all_names(visit) if name not in own]
    prefixed = ("--resource-pattern-type", "prefixed")
    wanted: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
        (("--topic", f"{prefix}.", *prefixed), (*OWN, CREATE)),
        *((("--topic", name), (*MAPPED, CREATE)) for name in mapped),
        *(
            (("--topic", start, *prefixed) if start else ("--topic", "*"), (*MAPPED, CREATE))
            for start in _starts(visit.mappings)
        ),
        (("--transactional-id", f"{prefix}.shard-", *prefixed), ("Write", "Describe")),
        (("--group", f"{prefix}.", *prefixed), ("Read", "Describe")),
        (("--cluster",), ("IdempotentWrite", "DescribeConfigs")),
    ]
    head = ("kafka-acls.sh", "--bootstrap-server", visit.kafka.bootstrap, "--add")
    principal = ("--allow-principal", _principal(visit.config))
    return [
        shlex.join((*head, *principal, *_operations(operations), *resource))
        for resource, operations in wanted
    ]


def _starts(mappings: Mappings) -> list[str]:
    """How the topics begin that only a message can name; empty: anyhow."""
    patterns = [m.template for m in mappings.queues if m.is_dynamic]
    patterns += [m.journal for m in mappings.queues if m.journal and m.queue.has_wildcard]
    if mappings.defaults.unknown == "auto-create":
        patterns.append("{queue}")
    starts = {pattern.partition("{")[0] for pattern in patterns if "{" in pattern}
    return [""] if "" in starts else sorted(starts)


def _operations(names: tuple[str, ...]) -> list[str]:
    return [word for name in names for word in ("--operation", name)]


def _principal(config: Config) -> str:
    user = config.kafka.get("sasl.username", config.kafka.get("sasl.user.name"))
    return f"User:{user}" if isinstance(user, str) else "User:msmq-bridge"
