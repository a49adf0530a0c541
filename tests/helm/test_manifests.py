"""Every object that the chart makes, over every values file: valid, and what it has to be."""

import base64
import json
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import jsonschema
import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from bridge.adapters.config_files import load_config, load_mappings
from bridge.adapters.doctor.rights import acl_commands
from bridge.adapters.doctor.visit import Visit
from bridge.adapters.kafka.topics import OwnTopics, own_configs
from bridge.config import Secret
from tests.docs.test_help import parsed
from tests.helm.chart import CHART, load_yaml
from tests.helm.crds import SCHEMAS
from tests.helm.rendering import (
    FILES,
    Object,
    helm,
    of_kind,
    one,
    pod_specs,
    rendered,
    template,
)

KUBERNETES = ("1.29", "1.37")  # the oldest that Chart.yaml lets in, the newest that is known
LEAST = ["--values", f"{Path(__file__).parent}/values/minimal.yaml"]


def test_lint() -> None:
    files = [f"--values={Path(__file__).parent}/values/{name}.yaml" for name in FILES]
    for values in files[:2]:
        done = helm("lint", "--strict", str(CHART), values)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.parametrize("values", FILES)
def test_every_object_is_valid(values: str) -> None:
    for each in rendered(values):
        kind = (each["apiVersion"], each["kind"])
        if kind in SCHEMAS:
            jsonschema.validate(each, SCHEMAS[kind])
            continue
        for version in KUBERNETES if values == "everything" else KUBERNETES[1:]:
            kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("values", FILES)
def test_names_are_unique_and_short_enough(values: str) -> None:
    objects = rendered(values)
    names = [(o["kind"], o["metadata"]["namespace"], o["metadata"]["name"]) for o in objects]
    assert len(set(names)) == len(names)
    assert max(len(name) for _, _, name in names) <= 52
    for each in objects:
        assert all(len(text) <= 63 for text in each["metadata"]["labels"].values())


def test_a_wrong_object_would_be_seen() -> None:
    """The checks above can fail."""
    wrong = json.loads(json.dumps(one("StatefulSet", rendered("minimal"))))
    wrong["spec"]["template"]["spec"]["containers"][0]["imagePolicy"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES[1], strict=True)
    monitor = json.loads(json.dumps(one("ServiceMonitor", rendered("everything"))))
    monitor["spec"]["endpoints"][0]["intervall"] = "15s"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(monitor, SCHEMAS[monitor["apiVersion"], "ServiceMonitor"])


# -- the program takes what the chart writes ----------------------------------------------------


def text_of(objects: tuple[Object, ...], key: str) -> str:
    [found] = [o["data"][key] for o in of_kind("ConfigMap", objects) if key in o["data"]]
    return cast(str, found)


def written(objects: tuple[Object, ...], folder: Path) -> Path:
    for key in ("bridge.yaml", "queues.yaml"):
        (folder / key).write_text(text_of(objects, key), encoding="utf-8")
    return folder / "bridge.yaml"


@pytest.mark.parametrize("values", [name for name in FILES if not name.startswith("existing")])
def test_the_configuration_is_one_that_the_program_takes(values: str, tmp_path: Path) -> None:
    objects = rendered(values)
    config = load_config(written(objects, tmp_path))
    assert load_mappings(tmp_path / "queues.yaml").queues
    assert str(config.data) == "/var/lib/msmq-bridge"
    assert str(config.mappings) == "/etc/msmq-bridge/mappings"
    assert "bootstrap.servers" in config.kafka
    container = one("StatefulSet", objects)["spec"]["template"]["spec"]["containers"][0]
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {str(config.data), str(config.mappings), "/tmp"} < mounts  # noqa: S108
    assert container["args"][:3] == ["serve", "--config", "/etc/msmq-bridge/config/bridge.yaml"]
    ports = {p["name"].replace("-", "_"): p["containerPort"] for p in container["ports"]}
    ports["endpoint_mapper"] = ports.pop("epm", None)
    listen = config.listen
    names = ("binary", "ping", "srmp", "srmp_tls", "rpc", "rpc_qp", "endpoint_mapper", "admin")
    assert {name: ports.get(name) for name in names} == {n: getattr(listen, n) for n in names}
    assert ports.get("lease", 0) == listen.lease
    assert all(port is None or port >= 1024 for port in ports.values())  # no right to others
    used = [*config.kafka.values(), config.admin.token_file, config.rpc.users, config.srmp.key]
    for value in used:
        file = value.file if isinstance(value, Secret) else value
        if isinstance(file, Path):
            assert str(file.parent) in mounts


def test_large_numbers_stay_what_they_are(tmp_path: Path) -> None:
    config = load_config(written(rendered("everything"), tmp_path))
    assert config.queue_manager.quota_kb == 16777216
    spec = one("StatefulSet", rendered("everything"))["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsUser"] == 1000660000


def test_existing_configuration_is_mounted() -> None:
    for values, kind, key in (
        ("existing-configmaps", "configMap", "name"),
        ("existing-secrets", "secret", "secretName"),
    ):
        objects = rendered(values)
        assert of_kind("ConfigMap", objects) == []
        volumes = one("StatefulSet", objects)["spec"]["template"]["spec"]["volumes"]
        named = {v["name"]: v[kind][key] for v in volumes if kind in v}
        named.pop("admin-token", None)
        assert named == {"config": "my-bridge", "mappings": "my-queues"}


# -- one by one ---------------------------------------------------------------------------------


def test_one_pod_rolls_two_do_not() -> None:
    """A standby is never ready: a rolling update would wait for it for ever."""
    single, double = (one("StatefulSet", rendered(v))["spec"] for v in ("minimal", "everything"))
    assert (single["replicas"], single["updateStrategy"]["type"]) == (1, "RollingUpdate")
    assert (double["replicas"], double["updateStrategy"]["type"]) == (2, "OnDelete")
    assert double["podManagementPolicy"] == "Parallel"
    headless = one("Service", rendered("everything"), "-pods")
    assert double["serviceName"] == headless["metadata"]["name"]
    assert headless["spec"]["clusterIP"] == "None"


@pytest.mark.parametrize("values", FILES)
def test_of_two_one_waits(values: str) -> None:
    spec = one("StatefulSet", rendered(values))["spec"]
    args = spec["template"]["spec"]["containers"][0]["args"]
    assert ("--standby" in args) is (spec["replicas"] == 2)
    assert parsed(args) == ("serve",)
    ports = {port["name"] for port in spec["template"]["spec"]["containers"][0]["ports"]}
    assert ("lease" in ports) is (spec["replicas"] == 2)


@pytest.mark.parametrize("values", FILES)
def test_services_send_to_ready_pods_of_the_appliance_only(values: str) -> None:
    labels = one("StatefulSet", rendered(values))["spec"]["template"]["metadata"]["labels"]
    for service in of_kind("Service", rendered(values)):
        spec = service["spec"]
        assert spec["publishNotReadyAddresses"] is False
        assert spec["selector"].items() <= labels.items()
        assert spec["selector"]["app.kubernetes.io/component"] == "appliance"
    for batch in of_kind("CronJob", rendered(values)):
        meta = batch["spec"]["jobTemplate"]["spec"]["template"]["metadata"]
        assert meta["labels"]["app.kubernetes.io/component"] == "batch"


@pytest.mark.parametrize(
    ("values", "scheme"),
    [("minimal", "HTTP"), ("everything", "HTTPS"), ("existing-secrets", "HTTPS")],
)
def test_probes(values: str, scheme: str) -> None:
    container = one("StatefulSet", rendered(values))["spec"]["template"]["spec"]["containers"][0]
    paths = {
        name: container[name]["httpGet"]
        for name in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    assert paths == {
        "startupProbe": {"path": "/livez", "port": "admin", "scheme": scheme},
        "livenessProbe": {"path": "/livez", "port": "admin", "scheme": scheme},
        "readinessProbe": {"path": "/readyz", "port": "admin", "scheme": scheme},
    }


def test_the_admin_port_knows_the_name_of_its_service(tmp_path: Path) -> None:
    """Else its page is refused there: DNS rebinding."""
    for values, more in (("minimal", []), ("everything", ["bridge01-admin.example.com"])):
        name = one("Service", rendered(values), "-admin")["metadata"]["name"]
        config = load_config(written(rendered(values), tmp_path))
        own = [name, f"{name}.queues", f"{name}.queues.svc"]
        assert list(config.admin.names) == [*own, *more]
    assert config.admin.protect_reads  # what the user says stays


class Cluster(BaseHTTPRequestHandler):
    """As much of a Kubernetes API server as Helm's `lookup` asks for; it has one Secret."""

    secret: ClassVar[Object] = {}

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        secrets = {"name": "secrets", "namespaced": True, "kind": "Secret", "verbs": ["get"]}
        found: dict[str, Any] = {
            "/version": {"major": "1", "minor": "30", "gitVersion": "v1.30.0"},
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
            "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [secrets]},
        }
        if self.secret:
            name = self.secret["metadata"]["name"]
            found[f"/api/v1/namespaces/queues/secrets/{name}"] = self.secret
        missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound"}
        body = json.dumps(found.get(path, missing | {"code": 404})).encode()
        self.send_response(200 if path in found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def token_with(cluster: Object) -> str:
    """The token of the chart's Secret when it is upgraded in a cluster with this Secret."""
    server = HTTPServer(("127.0.0.1", 0), type("Known", (Cluster,), {"secret": cluster}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    only = ("--show-only", "templates/secret.yaml")
    try:
        done = template(*LEAST, *only, "--dry-run=server", "--kube-apiserver", url)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (done.returncode, done.stderr) == (0, "")
    token: str = load_yaml(done.stdout)["data"]["token"]
    return base64.b64decode(token).decode()


def test_the_token_is_made_once() -> None:
    first, second = token_with({}), token_with({})
    assert re.fullmatch("[A-Za-z0-9]{43}", first)
    assert first != second
    made = json.loads(json.dumps(one("Secret", rendered("minimal"))))
    made["data"] = {"token": base64.b64encode(b"of-the-first-day").decode()}
    assert token_with(made) == "of-the-first-day"


def test_the_admin_port_has_a_token(tmp_path: Path) -> None:
    """Made by the chart, or a Secret of the user's, or named in `config` already."""
    made = one("Secret", rendered("minimal"))["metadata"]["name"]
    for values, secret, key in (
        ("minimal", made, "token"),
        ("existing-configmaps", "my-token", "admin.token"),
    ):
        spec = one("StatefulSet", rendered(values))["spec"]["template"]["spec"]
        [volume] = [v["secret"] for v in spec["volumes"] if v["name"] == "admin-token"]
        assert volume["secretName"] == secret
        assert volume["items"] == [{"key": key, "path": "token"}]
        mounts = {m["name"]: m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
        assert mounts["admin-token"] == "/etc/msmq-bridge/admin"
    config = load_config(written(rendered("minimal"), tmp_path))
    assert str(config.admin.token_file) == "/etc/msmq-bridge/admin/token"
    assert of_kind("Secret", rendered("existing-configmaps")) == []
    assert of_kind("Secret", rendered("everything")) == []  # config.admin.token_file is there
    spec = one("StatefulSet", rendered("everything"))["spec"]["template"]["spec"]
    assert "admin-token" not in {volume["name"] for volume in spec["volumes"]}


def test_the_token_is_not_for_spark_jobs() -> None:
    [job] = of_kind("CronJob", rendered("long-names"))
    volumes = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["volumes"]
    assert "admin-token" not in {volume["name"] for volume in volumes}


def test_the_ports_of_nodes_are_kept_by_the_policy() -> None:
    """A Service of type NodePort has no ranges of its own."""
    spec = one("Service", rendered("nodeports"), "msmq-bridge")["spec"]
    assert (spec["type"], spec["externalTrafficPolicy"]) == ("NodePort", "Local")
    assert "loadBalancerSourceRanges" not in spec
    policy = one("NetworkPolicy", rendered("nodeports"), "msmq-bridge")["spec"]
    blocks = [peer["ipBlock"]["cidr"] for peer in policy["ingress"][0]["from"][:2]]
    assert blocks == ["10.0.0.0/8", "fd00::/8"]  # not the wider networkPolicy.senders


def test_the_load_balancer() -> None:
    spec = one("Service", rendered("everything"), "msmq")["spec"]
    assert spec["type"] == "LoadBalancer"
    assert spec["loadBalancerSourceRanges"] == ["10.0.0.0/8", "fd00::/8"]
    assert spec["sessionAffinity"] == "ClientIP"
    assert spec["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 600}}
    assert spec["externalTrafficPolicy"] == "Local"
    ports = {(p["name"], p["port"], p["protocol"]) for p in spec["ports"]}
    assert ports == {
        *(("binary", 1801, "TCP"), ("ping", 3527, "UDP"), ("srmp", 80, "TCP")),
        *(("srmp-tls", 443, "TCP"), ("rpc", 2203, "TCP"), ("rpc-qp", 2205, "TCP")),
        ("epm", 135, "TCP"),
    }


def test_host_ports_instead() -> None:
    objects = rendered("hostports")
    assert {o["metadata"]["name"][-5:] for o in of_kind("Service", objects)} == {"-pods", "admin"}
    spec = one("StatefulSet", objects)["spec"]["template"]["spec"]
    hosts = {p["name"]: p.get("hostPort") for p in spec["containers"][0]["ports"]}
    assert hosts == {"binary": 1801, "ping": 3527, "admin": None}
    [data] = [v for v in spec["volumes"] if v["name"] == "data"]
    assert data["emptyDir"] == {"sizeLimit": "2Gi"}
    kinds = {o["kind"] for o in objects}
    made = {"ConfigMap", "Secret", "Service", "StatefulSet", "Pod"}
    assert kinds == made  # all the rest is off


def test_the_budget_and_the_spread() -> None:
    budget = one("PodDisruptionBudget", rendered("everything"))["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (2, "AlwaysAllow")
    spread = one("StatefulSet", rendered("everything"))["spec"]["template"]["spec"][
        "topologySpreadConstraints"
    ]
    assert [s["topologyKey"] for s in spread] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]
    assert all(s["labelSelector"] == budget["selector"] for s in spread)


def test_the_network_policy() -> None:
    policy = one("NetworkPolicy", rendered("everything"), "msmq")["spec"]
    senders, admin, lease = policy["ingress"]
    assert {p["port"] for p in senders["ports"]} == {1801, 3527, 8080, 8443, 2203, 2205, 10135}
    assert senders["from"][0] == {"ipBlock": {"cidr": "10.0.0.0/8"}}
    assert [p["port"] for p in admin["ports"]] == [9280]
    assert admin["from"][0] == {"podSelector": {}}
    assert "namespaceSelector" in admin["from"][1]
    dns, kafka, lease_out, acks, extra = policy["egress"]
    labels = one("StatefulSet", rendered("everything"))["spec"]["template"]["metadata"]["labels"]
    for rule, [peer] in ((lease, lease["from"]), (lease_out, lease_out["to"])):  # each other
        assert rule["ports"] == [{"port": 9181, "protocol": "TCP"}]
        assert peer["podSelector"]["matchLabels"].items() <= labels.items()
        assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "appliance"
    assert {p["port"] for p in dns["ports"]} == {53}
    assert kafka["to"] == [{"ipBlock": {"cidr": "10.9.0.0/16"}}]
    assert ({p["port"] for p in acks["ports"]}, acks["to"]) == (
        {1801, 80, 443},
        [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
    )
    assert extra["ports"][0]["port"] == 443
    closed = one("NetworkPolicy", rendered("everything"), "-closed")["spec"]
    assert (closed["policyTypes"], "ingress" in closed) == (["Ingress"], False)  # nobody gets in
    [chosen] = closed["podSelector"]["matchExpressions"]
    assert chosen["values"] == ["batch", "test"]
    tested = one("Pod", rendered("everything"))["metadata"]["labels"]
    assert senders["from"][1]["podSelector"]["matchLabels"].items() <= tested.items()


def test_monitoring() -> None:
    objects = rendered("everything")
    monitor = one("ServiceMonitor", objects)
    service = one("Service", objects, "-admin")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert wanted <= service["metadata"]["labels"].items()
    matching = [o for o in of_kind("Service", objects) if wanted <= o["metadata"]["labels"].items()]
    assert matching == [service]  # or every pod would be read twice
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"][0]["scheme"] == "https"
    [renamed] = monitor["spec"]["endpoints"][0]["relabelings"]
    rules_text = (CHART / "files" / "alerts.yaml").read_text(encoding="utf-8")
    jobs = set(re.findall(r'job="([^"]+)"', rules_text))
    assert jobs <= {renamed["replacement"]}
    rules = one("PrometheusRule", objects)["spec"]["groups"]
    assert "{{ $labels." in json.dumps(rules)  # Helm has left Prometheus' own templates alone
    board = one("ConfigMap", objects, "-dashboard")
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(board["data"]["msmq-bridge.json"])["panels"]


def test_the_jobs() -> None:
    nightly = one("CronJob", rendered("everything"), "-nightly")["spec"]
    assert (nightly["schedule"], nightly["timeZone"]) == ("0 3 * * *", "Etc/UTC")
    job = nightly["jobTemplate"]["spec"]
    [container] = job["template"]["spec"]["containers"]
    assert container["image"] == "msmq-bridge-spark:0.1.0"
    assert container["args"][:3] == ["reconcile", "--config", "/etc/msmq-bridge/config/bridge.yaml"]
    assert container["args"][3:] == ["--source", "/work/exports", "--out", "/work/report"]
    [rule] = job["podFailurePolicy"]["rules"]  # exit code 2 is a verdict, design 3.5
    assert (rule["action"], rule["onExitCodes"]["values"]) == ("FailJob", [2])
    assert rule["onExitCodes"]["containerName"] == container["name"]
    claims = [v for v in job["template"]["spec"]["volumes"] if "persistentVolumeClaim" in v]
    assert [v["name"] for v in claims] == ["work"]
    assert one("CronJob", rendered("everything"), "-dead-letters")["spec"]["suspend"] is True


# -- Strimzi ------------------------------------------------------------------------------------


def test_its_topics_are_those_that_the_program_would_make() -> None:
    topics = of_kind("KafkaTopic", rendered("strimzi-scram"))
    found = {t["spec"]["topicName"]: t["spec"] for t in topics}
    for name, config in own_configs(OwnTopics("_bridge01")).items():
        assert found[name]["config"] == config
        assert found[name]["partitions"] == 3  # design D2: the state topic's are the shards
        assert found.pop(name)["replicas"] == 3
    assert found.pop("_bridge01.lease") == {
        "topicName": "_bridge01.lease",
        "partitions": 1,  # or two would lead
        "replicas": 3,
    }
    assert {name: spec["partitions"] for name, spec in found.items()} == {
        "orders": 6,
        "orders.journal": 6,
    }
    assert found["orders"]["config"] == {"retention.ms": 604800000}


def test_its_user_has_the_rights_that_doctor_asks_for(tmp_path: Path) -> None:
    objects = rendered("strimzi-scram")
    user = one("KafkaUser", objects)
    config = load_config(written(objects, tmp_path))
    mappings = load_mappings(tmp_path / "queues.yaml")
    kafka = SimpleNamespace(bootstrap="broker:9092")
    visit = cast(Visit, SimpleNamespace(config=config, mappings=mappings, kafka=kafka))
    wanted = {_right(command.split()) for command in acl_commands(visit)}
    given = {
        (r["type"], r.get("name"), r.get("patternType", "literal"), frozenset(a["operations"]))
        for a in user["spec"]["authorization"]["acls"]
        for r in [a["resource"]]
    }
    extra = {right[1] for right in given - wanted}
    assert wanted <= given
    assert extra == {"claims.", "more"}  # strimzi.user.extraTopics


def _right(words: list[str]) -> tuple[str, str | None, str, frozenset[str]]:
    """A line of kafka-acls.sh as Strimzi writes it."""
    pairs = list(pairwise(words))
    operations = frozenset(value for key, value in pairs if key == "--operation")
    pattern = "prefix" if "prefixed" in words else "literal"
    kinds = {"--topic": "topic", "--group": "group", "--transactional-id": "transactionalId"}
    for key, value in pairs:
        if key in kinds:
            return kinds[key], value.strip("'"), pattern, operations
    return "cluster", None, pattern, operations


def test_the_connection_comes_from_its_objects(tmp_path: Path) -> None:
    config = load_config(written(rendered("strimzi-scram"), tmp_path))
    assert config.kafka["bootstrap.servers"] == "events-kafka-bootstrap.queues.svc:9093"
    assert (
        config.kafka["sasl.username"]
        == one("KafkaUser", rendered("strimzi-scram"))["metadata"]["name"]
    )
    own = load_config(written(rendered("strimzi-tls"), tmp_path))
    assert own.kafka["bootstrap.servers"] == "events.example.com:9094"  # the user's word wins
    assert own.kafka["security.protocol"] == "SSL"
    user = one("KafkaUser", rendered("strimzi-tls"))
    assert (user["apiVersion"], user["metadata"]["namespace"]) == (
        "kafka.strimzi.io/v1beta2",
        "kafka",
    )


# -- what is refused ----------------------------------------------------------------------------

BY_THE_SCHEMA = {
    "replicas=3": "replicas: replicas must be one of",
    "replicaCount=2": "Additional property replicaCount",
    "image.tag=latest": "image.tag: Must not validate",
    "image.digest=sha256:12": "image.digest: Does not match",
    "config.listen.binary=1802": "config: Additional property listen",
    "config.shards=0": "config.shards: Must be greater",
    "config.shardz=2": "config: Additional property shardz",
    "config.rpc.minimum_level=some": "config.rpc.minimum_level: config.rpc.minimum_level must",
    "config.kafka.sasl\\.password=hunter2": "config.kafka.sasl.password: Invalid type",
    "config.kafka.ssl\\.key\\.pem=x": "config.kafka.ssl.key.pem: Invalid type",
    "mappings.queues[0].tpoic=x": "mappings.queues.0: Additional property tpoic",
    "mappings.queues[0].mode=keep": "mappings.queues.0.mode: mappings.queues.0.mode must",
    "mappings.queues[1].topic=x": "mappings.queues.1: queue is required",
    "listeners.rpc.port=135": "listeners.rpc.port: Must be greater",
    "service.type=ExternalName": "service.type: service.type must be one of",
    "service.sourceRanges[0]=anywhere": "service.sourceRanges.0: Does not match",
    "service.sourceRanges[1]=0.0.0.0/0": "service.sourceRanges.1: Does not match",
    "service.sourceRanges[2]=::/00": "service.sourceRanges.2: Does not match",
    "service.openToAll=yes": "service.openToAll: Invalid type",
    "admin.tokenKey=": "admin.tokenKey: String length must be",
    "security.runAsUser=0": "security.runAsUser: Must be greater",
    "batch.schedules[0].name=x": "batch.schedules.0: command is required",
    "podDisruptionBudget.maxUnavailable=-1": "podDisruptionBudget.maxUnavailable: Must be",
    "persistence.size=big": "persistence.size: Does not match",
}


def sets(*values: str) -> list[str]:
    return [part for value in values for part in ("--set", value)]


def test_refused_by_the_schema() -> None:
    """Helm names all faults of one run."""
    done = template(*LEAST, *sets(*BY_THE_SCHEMA))
    assert done.returncode != 0
    assert [words for words in BY_THE_SCHEMA.values() if words not in done.stderr] == []


OPEN = "service.sourceRanges=null"
NO_POLICY = "networkPolicy.enabled=false"
HIDDEN = "service.externalTrafficPolicy=Cluster"
NAMED = "config.admin.token_file=/etc/msmq-bridge/secrets/a/token"
DYNAMIC = "mappings.queues[0].topic=\\{queue\\}"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["config.kafka=null"], "bootstrap.servers is missing"),
        (["config.queue_manager=null"], "config.queue_manager.names is missing"),
        (["configFrom.configMap=a"], "config and configFrom are both there"),
        (["configFrom.configMap=a", "configFrom.secret=b"], "not both"),
        (["mappingsFrom.configMap=a", "mappingsFrom.secret=b"], "not both"),
        (["mappingsFrom.secret=b"], "mappings and mappingsFrom are both there"),
        (["service.enabled=false"], "nobody can send"),
        (["listeners.binary.enabled=false", "listeners.srmp.enabled=false"], "are all off"),
        (["listeners.srmp.port=1801"], "binary and srmp are both at port 1801"),
        (["strimzi.topics.enabled=true"], "strimzi.cluster is missing"),
        ([OPEN], "service.type LoadBalancer opens the listeners to every network: list the"),
        ([OPEN, "service.type=NodePort"], "service.type NodePort opens the listeners"),
        ([OPEN, "hostPorts=true"], "hostPorts opens the listeners to every network"),
        ([OPEN, "service.enabled=false", "hostPorts=true"], "hostPorts opens the listeners"),
        ([OPEN, "service.type=ClusterIP", "hostPorts=true"], "hostPorts opens the listeners"),
        (["service.openToAll=true"], "openToAll and service.sourceRanges contradict each other"),
        (["service.type=NodePort", NO_POLICY], "NodePort: only the NetworkPolicy keeps"),
        (["hostPorts=true", NO_POLICY], "hostPorts: only the NetworkPolicy keeps"),
        (["service.type=NodePort", HIDDEN], "Cluster hides the senders' addresses"),
        ([NAMED, "admin.tokenSecret=b"], "admin.tokenSecret and config.admin.token_file"),
        (["strimzi.user.enabled=true", "strimzi.cluster=c", DYNAMIC], "no right fits"),
    ],
)
def test_refused_by_the_chart(values: list[str], words: str) -> None:
    done = template(*LEAST, *sets(*values))
    assert done.returncode != 0
    assert words in done.stderr


def test_open_to_all_is_said_in_words() -> None:
    for kind in ("LoadBalancer", "NodePort"):
        done = template(*LEAST, *sets(OPEN, "service.openToAll=true", f"service.type={kind}"))
        assert (done.returncode, done.stderr) == (0, "")
    done = template(*LEAST, *sets(OPEN, "service.type=ClusterIP"))  # reached in the cluster only
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_given_is_refused_with_what_is_missing() -> None:
    done = template()
    assert done.returncode != 0
    assert "bootstrap.servers is missing" in done.stderr


# -- `helm test` and the notes ------------------------------------------------------------------


class Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_what_helm_test_runs(tmp_path: Path) -> None:
    [container] = one("Pod", rendered("everything"))["spec"]["containers"]
    assert container["command"] == ["python", "-c"]
    script, scheme, host, admin, seconds, *ports = container["args"]
    assert (scheme, host, admin, seconds) == ("https", "msmq-pods", "9280", "120")
    assert set(ports) == {"1801", "8080", "8443", "2203", "2205", "10135"}  # not the UDP one
    server = HTTPServer(("127.0.0.1", 0), Ready)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    port = str(server.server_address[1])
    run = [sys.executable, "-c", script, "http", "127.0.0.1", port]
    try:
        good = subprocess.run([*run, "0", port], capture_output=True, text=True, timeout=30)
        bad = subprocess.run([*run, "0", "1"], capture_output=True, text=True, timeout=30)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout == f"127.0.0.1 is ready, ports {port} take connections\n"
    assert bad.returncode == 1
    assert bad.stderr.startswith("127.0.0.1 is not ready: ")


def notes(values: str, folder: Path) -> str:
    """`helm template` leaves the notes out, so they are rendered as part of an object."""
    copy = folder / values
    shutil.copytree(CHART, copy)
    text = (copy / "templates" / "NOTES.txt").read_text(encoding="utf-8")
    (copy / "templates" / "notes.yaml").write_text(
        f'{{{{- define "notes" }}}}{text}{{{{ end }}}}\nkind: Notes\nmetadata: {{name: notes}}\n'
        'text: |\n  {{- include "notes" . | nindent 2 }}\n',
        encoding="utf-8",
    )
    path = f"{Path(__file__).parent}/values/{values}.yaml"
    only = ("--show-only", "templates/notes.yaml", "--values", path)
    done = helm("template", "blue", str(copy), *only)
    assert (done.returncode, done.stderr) == (0, "")
    return cast(str, load_yaml(done.stdout)["text"])


def test_the_notes(tmp_path: Path) -> None:
    least, most = notes("minimal", tmp_path), notes("everything", tmp_path)
    assert "entry for BRIDGE01 there." in " ".join(least.split())
    assert "WARNING" not in least
    assert "get secret blue-msmq-bridge-admin-token -o go-template='{{index" in least
    existing = notes("existing-configmaps", tmp_path)
    assert "WARNING: `service.openToAll` is true" in existing
    assert "admin: {token_file: /etc/msmq-bridge/admin/token}" in existing
    assert "get secret" not in most  # its token is its own
    assert "rollout status statefulset/blue-msmq-bridge" in least
    assert "WARNING" not in most
    assert "Delete the pod that is" in most
    assert "rollout status" not in most  # kubectl has none for OnDelete
    assert "`mappings` has no queues" not in existing


@pytest.mark.parametrize("values", FILES)
def test_every_pod_is_accounted_for(values: str) -> None:
    """The policy checks look at all of them."""
    makers = [o for o in rendered(values) if o["kind"] in ("Pod", "StatefulSet", "CronJob")]
    assert len(pod_specs(rendered(values))) == len(makers) >= 2
    others = {"Deployment", "DaemonSet", "Job", "ReplicaSet"}
    assert not others & {o["kind"] for o in rendered(values)}
