"""checkov over everything that the chart makes: what it finds is mended, or has a reason here."""

from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.helm.checkov import IndexUnreachable, environment, failed_checks
from tests.helm.rendering import FILES, manifests_of

pytestmark = pytest.mark.timeout(600)  # the first time it is installed
PLANTED: Final = "planted"
BAD: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: bad, namespace: queues}
spec:
  hostNetwork: true
  containers:
    - name: bad
      image: registry.example.com/bad:latest
      securityContext: {privileged: true, allowPrivilegeEscalation: true}
"""
# Latest tag, privileged container, privilege escalation, the node's network.
FAULTS_OF_BAD: Final = {"CKV_K8S_14", "CKV_K8S_16", "CKV_K8S_20", "CKV_K8S_19"}


class Finding(NamedTuple):
    values: str  # of which values file
    kind: str
    check: str


class Accepted(NamedTuple):
    """Found, and left as it is."""

    check: str
    kinds: tuple[str, ...]
    values: tuple[str, ...]
    why: str

    def covers(self, found: Finding) -> bool:
        return (
            found.check == self.check and found.kind in self.kinds and found.values in self.values
        )


PODS: Final = ("StatefulSet", "Pod", "CronJob")
ANY: Final = tuple(FILES)
ACCEPTED: Final = (
    Accepted(
        *("CKV_K8S_15", PODS, tuple(name for name in FILES if name != "everything")),
        "image.pullPolicy: a tag is never `latest`, and a pod that starts again, as it does when "
        "the other one takes over, must not need the registry",
    ),
    Accepted(
        *("CKV_K8S_43", PODS, ANY),
        "the image is the user's own: image.digest and batch.image.digest pin it",
    ),
    Accepted("CKV_K8S_26", ("StatefulSet",), ("hostports",), "because hostPorts asks for them"),
    Accepted(
        *("CKV_K8S_35", ("StatefulSet", "CronJob"), ("everything",)),
        "a variable from a Secret, because these values ask; `secrets` mounts files",
    ),
    Accepted("CKV_K8S_8", ("Pod",), ANY, "the pod of `helm test` asks once and ends"),
    Accepted("CKV_K8S_9", ("Pod",), ANY, "the same"),
)


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> set[Finding]:
    folder = tmp_path_factory.mktemp("manifests")
    for values in FILES:
        (folder / f"{values}.yaml").write_text(manifests_of(values), encoding="utf-8")
    (folder / f"{PLANTED}.yaml").write_text(BAD, encoding="utf-8")
    try:
        python = environment()
    except IndexUnreachable as error:
        pytest.skip(f"checkov is not here and the package index cannot be reached: {error}")
    return {
        Finding(Path(c["file_path"]).stem, c["resource"].partition(".")[0], c["check_id"])
        for c in failed_checks(python, folder)
    }


def test_what_it_finds_has_a_reason(findings: set[Finding]) -> None:
    ours = {found for found in findings if found.values != PLANTED}
    assert {f for f in ours if not any(each.covers(f) for each in ACCEPTED)} == set()


def test_every_reason_is_needed(findings: set[Finding]) -> None:
    assert [each for each in ACCEPTED if not any(map(each.covers, findings))] == []


def test_a_bad_manifest_is_found(findings: set[Finding]) -> None:
    assert {f.check for f in findings if f.values == PLANTED} >= FAULTS_OF_BAD
