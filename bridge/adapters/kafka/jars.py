"""Gets the jars of Apache Kafka: once, into the user's cache folder.

`KAFKA_HOME` wins. Otherwise the Ivy that is inside the PySpark wheel resolves them with its own
built-in settings, so no Maven is needed and nothing here names a registry. A resolution runs
beside its goal under a lock and is renamed into place when it is complete and every jar has the
SHA-256 of `jars.sha256`. A cache that is there already is checked in the same way before it is
used; a KAFKA_HOME is the user's own and is not.
"""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, NamedTuple

from rich.console import Console
from rich.progress import Progress

from bridge.adapters.kafka.java import find_java
from bridge.adapters.kafka.pins import check_jars, read_pins
from bridge.model.errors import BrokerFailed

KAFKA_VERSION: Final = "4.3.1"
LOG4J_VERSION: Final = "2.25.4"
RESOLVE_TIMEOUT_S: Final = 900.0

# `default->default`: with `->runtime` Ivy leaves out the kafka jar itself.
_IVY_MODULE: Final = f"""\
<ivy-module version="2.0">
  <info organisation="msmq-bridge" module="kafka"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}"
                conf="default->default"/>
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="{LOG4J_VERSION}"
                conf="default->default"/>
  </dependencies>
</ivy-module>
"""
_MEND: Final = "check the network, or set KAFKA_HOME to an unpacked Apache Kafka 4"


class Bundle(NamedTuple):
    """Jars that belong together, and how Ivy is asked for them."""

    title: str  # what a user reads while they come
    module: str
    needed: tuple[str, ...]
    pins: Mapping[str, str]  # name of each jar -> SHA-256
    mend: str


_BUNDLE: Final = Bundle(
    f"Apache Kafka {KAFKA_VERSION} (44 MB, once)",
    _IVY_MODULE,
    ("kafka_2.13-*.jar", "kafka-clients-*.jar", "scala-library-*.jar", "log4j-*.jar"),
    read_pins(f"kafka-{KAFKA_VERSION}"),
    _MEND,
)


def kafka_jars() -> Path:
    """The folder of Kafka's jars, filled first if need be. Raises BrokerFailed."""
    home = os.environ.get("KAFKA_HOME")
    if home:
        return _jars_of_home(Path(home))
    cached = cache_folder()
    try:
        return filled(cached, _BUNDLE)
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        raise BrokerFailed(f"cannot keep Kafka's jars in {cached} ({reason}); {_MEND}") from error


def cache_folder() -> Path:
    """Where the jars are kept; laid out so that it could be a KAFKA_HOME."""
    return cache_root() / f"kafka-{KAFKA_VERSION}"


def cache_root() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # the XDG rules: empty or relative means unset
        base = Path.home() / ".cache"
    return base / "msmq-bridge"


def is_complete(libs: Path, bundle: Bundle = _BUNDLE) -> bool:
    return all(any(libs.glob(pattern)) for pattern in bundle.needed)


def _jars_of_home(home: Path) -> Path:
    libs = home / "libs"
    if not any(libs.glob("kafka_2.13-*.jar")):
        raise BrokerFailed(
            f"KAFKA_HOME is {home}, which has no libs/kafka_2.13-*.jar; "
            "point it at an unpacked Apache Kafka 4, or unset it"
        )
    return libs


def filled(cached: Path, bundle: Bundle) -> Path:
    """The folder of the bundle's jars, fetched if need be, checked.

    Raises BrokerFailed and OSError.
    """
    libs = cached / "libs"
    if is_complete(libs, bundle):
        check_jars(libs, bundle.pins, f"delete {cached} to fetch it again")
    else:
        fill(cached, bundle)
    return libs


def fill(cached: Path, bundle: Bundle) -> None:
    """Resolve the bundle into `cached`/libs, unless another process is just doing it."""
    cached.parent.mkdir(parents=True, exist_ok=True)
    with _alone(cached.with_name(f"{cached.name}.lock")):
        if is_complete(cached / "libs", bundle):  # another process has just done it
            return
        part = cached.with_name(f"{cached.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        try:
            part.mkdir()
            _resolve(part, bundle, cached)
            shutil.rmtree(cached, ignore_errors=True)
            part.rename(cached)
        finally:
            shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _resolve(part: Path, bundle: Bundle, goal: Path) -> None:
    module, work = part / "ivy.xml", part / "work"
    module.write_text(bundle.module)
    command: list[str | Path] = [find_java(), f"-Divy.default.ivy.user.dir={work}"]
    command += ["-jar", _ivy_jar(), "-ivy", module, "-cache", work, "-confs", "default"]
    command += ["-retrieve", f"{part}/libs/[artifact]-[revision](-[classifier]).[ext]"]
    command += ["-types", "jar", "bundle"]
    code, output = _run(command, bundle, goal)
    what = bundle.title.partition(" (")[0]
    if code != 0 or not is_complete(part / "libs", bundle):
        raise BrokerFailed(f"cannot get {what}: {reason_in(output)}; {bundle.mend}")
    shutil.rmtree(work)
    check_jars(
        part / "libs",
        bundle.pins,
        f"the registry or a proxy gives another {what} than the one that was tested",
    )


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        for jar in sorted(Path(folder).glob("jars/ivy-*.jar")):
            return jar
    raise BrokerFailed(f"no Ivy in the installed PySpark, it should get Kafka's jars; {_MEND}")


def _run(command: list[str | Path], bundle: Bundle, goal: Path) -> tuple[int, list[str]]:
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as ivy:
        watchdog = threading.Timer(RESOLVE_TIMEOUT_S, ivy.kill)
        watchdog.start()
        try:
            assert ivy.stdout is not None
            output = list(_with_progress(ivy.stdout, bundle, goal))
            return ivy.wait(), output
        finally:
            watchdog.cancel()
            ivy.kill()


def _with_progress(lines: IO[str], bundle: Bundle, goal: Path) -> Iterator[str]:
    """Passes the lines on and shows on stderr how far they are: a bar, or one plain line."""
    title = f"getting {bundle.title}"
    console = Console(stderr=True)
    if not console.is_terminal:
        sys.stderr.write(f"{title} into {goal}\n")
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=len(bundle.pins))
        for line in lines:
            if "[SUCCESSFUL ]" in line:
                progress.advance(task)
            yield line


def reason_in(output: Iterable[str]) -> str:
    """The last line of Ivy's output that says something."""
    said = [line.strip(" \t\n:") for line in output if "USE VERBOSE" not in line]
    return next((line for line in reversed(said) if line), "Ivy said nothing")


def main() -> int:
    """`python -m bridge.adapters.kafka.jars` fills the cache ahead of time."""
    try:
        sys.stdout.write(f"{kafka_jars()}\n")
    except BrokerFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
