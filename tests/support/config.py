"""A `bridge.yaml` and its mappings for one test, on a prefix and topics of its own."""

import json
from pathlib import Path
from typing import Any

from tests.support.kafka import unique

# Short name -> transactional. The queue is private$\<name>, its topic <prefix>-<name>.
QUEUES = {"orders": True, "plain": False}


def write_config(folder: Path, bootstrap: str | None, **changes: Any) -> Path:
    """JSON is YAML too. `listen` is merged, other keys replace ours; None takes a key out."""
    listen: dict[str, Any] = {"host": "127.0.0.1", "binary": 0, "admin": 0}
    listen |= dict.fromkeys(("ping", "srmp", "rpc", "rpc_qp", "endpoint_mapper"))
    listen |= changes.pop("listen", {})
    settings: dict[str, Any] = {
        "queue_manager": {"names": ["BRIDGE01", "127.0.0.1"]},
        "listen": listen,
        "kafka": {"bootstrap.servers": bootstrap} if bootstrap else None,
        "topic_prefix": unique("cli"),
        "data": "data",
        "mappings": "mappings.yaml",
        "shards": 1,
    } | changes
    settings = {key: value for key, value in settings.items() if value is not None}
    folder.mkdir(parents=True, exist_ok=True)
    queues = [
        {
            "queue": f"private$\\{name}",
            "topic": topic(settings["topic_prefix"], name),
            "transactional": transactional,
        }
        for name, transactional in QUEUES.items()
    ]
    (folder / "mappings.yaml").write_text(json.dumps({"queues": queues}))
    path = folder / "bridge.yaml"
    path.write_text(json.dumps(settings))
    return path


def topic(prefix: str, name: str) -> str:
    return f"{prefix}-{name}"
