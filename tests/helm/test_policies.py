"""What a policy checker asks of manifests, as assertions over every values file.

The rules of the "restricted" Pod Security Standard, and more; checkov itself is in test_checkov.py.
"""

import re

import pytest

from tests.helm.rendering import FILES, Object, of_kind, pod_specs, rendered

RESTRICTED_VOLUMES = {
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral"),
    *("persistentVolumeClaim", "projected", "secret"),
}


@pytest.fixture(params=FILES)
def objects(request: pytest.FixtureRequest) -> tuple[Object, ...]:
    return rendered(request.param)


def containers(objects: tuple[Object, ...]) -> list[Object]:
    return [c for spec in pod_specs(objects) for c in spec["containers"]]


def test_the_restricted_standard(objects: tuple[Object, ...]) -> None:
    for spec in pod_specs(objects):
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & spec.keys()
        pod = spec["securityContext"]
        assert pod["runAsNonRoot"] is True
        assert pod["runAsUser"] > 0
        assert pod["runAsGroup"] > 0
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        for volume in spec.get("volumes", ()):
            assert volume.keys() - {"name"} <= RESTRICTED_VOLUMES
    for container in containers(objects):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["privileged"] is False
        assert context["runAsNonRoot"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("values", FILES)
def test_ports_of_the_node_only_when_asked_for(values: str) -> None:
    ports = [port for c in containers(rendered(values)) for port in c.get("ports", ())]
    assert any("hostPort" in port for port in ports) is (values == "hostports")


def test_the_root_is_read_only_and_what_is_written_is_a_volume(
    objects: tuple[Object, ...],
) -> None:
    for container in containers(objects):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        for mount in container.get("volumeMounts", ()):
            is_ours = mount["mountPath"] in ("/var/lib/msmq-bridge", "/tmp", "/work")  # noqa: S108
            assert mount.get("readOnly", False) is not is_ours


def test_no_token_of_the_cluster(objects: tuple[Object, ...]) -> None:
    for spec in pod_specs(objects):
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
    for account in of_kind("ServiceAccount", objects):
        assert account["automountServiceAccountToken"] is False
    assert not {"Role", "ClusterRole", "RoleBinding"} & {o["kind"] for o in objects}


def test_requests_and_limits(objects: tuple[Object, ...]) -> None:
    for container in containers(objects):
        for kind in ("requests", "limits"):
            assert container["resources"][kind].keys() == {"cpu", "memory"}


def test_images_are_pinned(objects: tuple[Object, ...]) -> None:
    for container in containers(objects):
        assert re.fullmatch(
            r"[\w./-]+(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})", container["image"]
        )
        assert container["imagePullPolicy"] in ("Always", "IfNotPresent", "Never")


def test_probes_of_what_serves(objects: tuple[Object, ...]) -> None:
    [serving] = [c for c in containers(objects) if c["name"] == "bridge"]
    assert {"startupProbe", "livenessProbe", "readinessProbe"} < serving.keys()


def test_secrets_are_mounted_not_written(objects: tuple[Object, ...]) -> None:
    for made in of_kind("Secret", objects):  # the only one that the chart makes: random
        assert made["metadata"]["name"].endswith("-admin-token")
    for spec in pod_specs(objects):
        for volume in spec.get("volumes", ()):
            for kind in ("secret", "configMap"):
                if kind in volume:
                    assert volume[kind]["defaultMode"] == 0o440
    for container in containers(objects):
        assert all("valueFrom" in env for env in container.get("env", ()))


def test_where_it_belongs(objects: tuple[Object, ...]) -> None:
    for each in objects:
        assert each["metadata"]["namespace"] in ("queues", "kafka")
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert labels["app.kubernetes.io/instance"] == "blue"


def test_the_admin_port_stays_inside(objects: tuple[Object, ...]) -> None:
    for service in of_kind("Service", objects):
        if service["spec"]["type"] != "ClusterIP":
            assert "admin" not in {port["name"] for port in service["spec"]["ports"]}
