"""Finds the Java that runs the embedded Kafka."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from bridge.model.errors import BrokerFailed

MINIMUM_VERSION: Final = 17  # of Apache Kafka 4 brokers
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_MEND: Final = f"install Java {MINIMUM_VERSION} or later, or point JAVA_HOME at one"


def find_java() -> Path:
    """The `java` of JAVA_HOME, else of PATH; BrokerFailed unless it is new enough."""
    java = _locate()
    version = _version_of(java)
    if version < MINIMUM_VERSION:
        raise BrokerFailed(f"{java} is Java {version}, too old for the embedded Kafka; {_MEND}")
    return java


def _locate() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if os.access(java, os.X_OK):
            return java
        raise BrokerFailed(f"JAVA_HOME is {home}, which has no bin/java; {_MEND}")
    found = shutil.which("java")
    if found is None:
        raise BrokerFailed(f"no java on PATH, the embedded Kafka needs it; {_MEND}")
    return Path(found)


def _version_of(java: Path) -> int:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BrokerFailed(f"{java} does not run ({error}); {_MEND}") from error
    match = _VERSION.search(answer.stderr + answer.stdout)
    if match is None:
        raise BrokerFailed(f"{java} -version tells no version; {_MEND}")
    return int(match[1])
