"""Where the demo lives when nobody says otherwise: its configuration and its queues."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bridge.adapters.private_files import make_private_folder
from bridge.model.errors import ConfigError

CONFIG: Final = "demo.yaml"
QUEUES: Final = "demo-queues.yaml"
_CONFIG_TEXT: Final = """\
# What `msmq-bridge demo` serves: any free ports on this machine, an embedded Kafka beside it.
queue_manager:
  names: [DEMO, localhost, 127.0.0.1]
listen:
  host: 127.0.0.1
  binary: 0
  admin: 0
  srmp: 0
  ping: null
  rpc: null
  rpc_qp: null
  endpoint_mapper: null
data: .
mappings: demo-queues.yaml
"""
_QUEUES_TEXT: Final = """\
queues:
  - queue: private$\\orders      # exactly once and in order, per sender
    topic: orders
    transactional: true
  - queue: private$\\readings    # express: fast, at most once
    topic: readings
  - queue: private$\\invoices    # recoverable: once per message id
    topic: invoices
"""


@contextmanager
def demo_folder(given: Path | None) -> Iterator[Path]:
    """The configuration file in this folder, made if need be; without one in a folder that goes."""
    if given is not None:
        yield _furnish(given)
        return
    with tempfile.TemporaryDirectory(prefix="msmq-bridge-demo-", ignore_cleanup_errors=True) as new:
        yield _furnish(Path(new))


def _furnish(folder: Path) -> Path:
    try:
        make_private_folder(folder)
        for name, text in ((CONFIG, _CONFIG_TEXT), (QUEUES, _QUEUES_TEXT)):
            if not (folder / name).exists():
                (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"cannot write to {folder} ({error.strerror})",
            where="--data",
            mend="choose a folder of this user's",
        ) from error
    return folder / CONFIG
