"""Runs the real Helm over the chart; one run per set of values."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from tests.helm.chart import CHART

HELM: Final = Path(sys.executable).with_name("helm")
VALUES: Final = Path(__file__).with_name("values")
FILES: Final = sorted(path.stem for path in VALUES.glob("*.yaml"))
RELEASE: Final = "blue"
NAMESPACE: Final = "queues"

Object = dict[str, Any]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, timeout=60)


def template(*options: str, name: str = RELEASE) -> subprocess.CompletedProcess[str]:
    return helm("template", name, str(CHART), "--namespace", NAMESPACE, *options)


def manifests_of(values: str, *options: str) -> str:
    """All that the chart makes of a values file, by its name."""
    done = template("--values", str(VALUES / f"{values}.yaml"), *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@cache
def rendered(values: str, *options: str) -> tuple[Object, ...]:
    """The same as objects."""
    documents = YAML(typ="safe", pure=True).load_all(manifests_of(values, *options))
    return tuple(document for document in documents if document is not None)


def of_kind(kind: str, objects: tuple[Object, ...]) -> list[Object]:
    return [found for found in objects if found["kind"] == kind]


def one(kind: str, objects: tuple[Object, ...], end: str = "") -> Object:
    """The only object of a kind whose name ends so."""
    [found] = [o for o in of_kind(kind, objects) if o["metadata"]["name"].endswith(end)]
    return found


def pod_specs(objects: tuple[Object, ...]) -> list[Object]:
    """Of whatever makes pods."""
    found: list[Object] = []
    for each in objects:
        match each["kind"]:
            case "Pod":
                found.append(each["spec"])
            case "StatefulSet":
                found.append(each["spec"]["template"]["spec"])
            case "CronJob":
                found.append(each["spec"]["jobTemplate"]["spec"]["template"]["spec"])
    return found
