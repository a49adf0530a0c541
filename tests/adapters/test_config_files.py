"""`bridge.yaml` and the mapping files: what is right is read, what is wrong is named."""

import re
import string
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.adapters.config_files import kafka_properties, load_config
from bridge.adapters.masking import SECRETS
from bridge.config import Address, Config, Secret
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid

# design 3.2, word for word
GOOD = """\
queue_manager:
  id: 3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77      # generated once and kept when absent
  names: [BRIDGE01, bridge01.example.com]        # every name and address senders use for us
  quota_kb: 8388608        # machine quota
  insecure_nacks: false    # DM-13
  clock_skew_s: 0          # tolerance when a sender's times are judged
peers:                     # optional: where to reach a sender's queue manager
  11111111-2222-3333-4444-555555555555: 127.0.0.1:1801   # GUID or host name -> address
listen:
  host: 0.0.0.0
  binary: 1801       # TCP sessions
  ping: 3527         # UDP
  srmp: 80           # HTTP; srmp_tls: 443
  rpc: 2103          # remote read and clients; rpc_qp: 2105; endpoint_mapper: 135
  admin: 9180        # /livez /readyz /metrics, JSON API and the web page
srmp:
  expired: deliver         # or discard
  redirect_in: [{from: "http://bridge01/msmq/ext/*", to: "http://bridge01/msmq/private$/orders"}]
  redirect_out: []         # same shape; receipt_redirect: [] replaces stream-receipt URLs
  receipt_targets: [sender, loopback]   # SR-49
admin:
  token_file: admin.token  # writes through the admin port need it
rpc:
  minimum_level: privacy   # none | connect | call | packet | integrity | privacy
  users: users.yaml        # name -> {password: …} or {nt_hash: …}; keytab: optional, for Kerberos
  release_after_s: 300     # an un-ended receive goes back to its queue
kafka:               # any librdkafka property, secrets from files or environment
  bootstrap.servers: broker1:9092
topic_prefix: _msmq-bridge   # of the topics it owns
data: /var/lib/msmq-bridge
mappings: mappings/  # a file or a folder
"""

HERE = "§"  # marks, in a broken text, where the complaint must point to


def write(folder: Path, text: str, name: str = "bridge.yaml") -> tuple[Path, str]:
    """The file without its mark, and the place of the mark as the error must spell it."""
    path = folder / name
    before, _, _ = text.partition(HERE)
    path.write_text(text.replace(HERE, ""), encoding="utf-8")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return path, f"{path}:{line}:{column}"


def complaint(path: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.mend
    return caught.value


def test_the_design_is_read_as_it_is_written(tmp_path: Path) -> None:
    path, _ = write(tmp_path, GOOD)
    config = load_config(path)
    assert config.queue_manager.id == Guid.parse("3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77")
    assert config.queue_manager.names == ("BRIDGE01", "bridge01.example.com")
    assert config.peers == {"11111111-2222-3333-4444-555555555555": Address("127.0.0.1", 1801)}
    assert config.srmp.redirect_in[0].source == "http://bridge01/msmq/ext/*"
    assert config.srmp.redirect_in[0].target == "http://bridge01/msmq/private$/orders"
    assert config.admin.token_file == tmp_path / "admin.token"
    assert config.rpc.users == tmp_path / "users.yaml"
    assert config.kafka == {"bootstrap.servers": "broker1:9092"}
    assert config.data == Path("/var/lib/msmq-bridge")
    assert config.mappings == tmp_path / "mappings"
    assert config.listen == Config().listen


def test_lists_may_stand_on_lines_of_their_own(tmp_path: Path) -> None:
    text = """\
queue_manager:
  names:
    - BRIDGE01
    - 10.0.0.5
srmp:
  redirect_in:
    - from: http://a/msmq/*
      to: http://b/msmq/c
  receipt_targets: ["*", 10.0.0.0/8, "host:8080", "fd00::/8", "::1"]
"""
    config = load_config(write(tmp_path, text)[0])
    assert config.queue_manager.names == ("BRIDGE01", "10.0.0.5")
    assert config.srmp.receipt_targets == ("*", "10.0.0.0/8", "host:8080", "fd00::/8", "::1")


@pytest.mark.parametrize("text", ["", "# nothing\n", "listen:\n  # all commented out\n", "{}"])
def test_every_setting_has_a_default(tmp_path: Path, text: str) -> None:
    config = load_config(write(tmp_path, text)[0])
    assert config == msgspec.structs.replace(Config(), mappings=tmp_path / "mappings")


def test_no_file_is_every_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config(None).mappings == tmp_path / "mappings"


def test_ports_may_be_free_or_off(tmp_path: Path) -> None:
    text = "listen: {binary: 0, ping: 0, srmp: null, srmp_tls: 443, rpc: ~, admin: 0}"
    listen = load_config(write(tmp_path, text)[0]).listen
    assert (listen.binary, listen.srmp, listen.srmp_tls, listen.rpc) == (0, None, 443, None)


def test_guids_and_peers_do_not_mind_case(tmp_path: Path) -> None:
    text = """\
queue_manager: {id: 3F8A0C5E-6A0B-4C55-9F0E-0D3C2B1A4F77}
peers: {SENDER02: "sender02", AAAAAAAA-2222-3333-4444-555555555555: "[fd00::7]:99"}
"""
    config = load_config(write(tmp_path, text)[0])
    assert str(config.queue_manager.id) == "3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77"
    assert config.peers == {
        "sender02": Address("sender02", 1801),
        "aaaaaaaa-2222-3333-4444-555555555555": Address("fd00::7", 99),
    }


def test_relative_paths_count_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    write(tmp_path / "conf", "data: ../state\nrpc: {keytab: k}\nkafka: {a: {file: s/x}}")
    monkeypatch.chdir(tmp_path)
    config = load_config(Path("conf/bridge.yaml"))
    assert config.data == tmp_path / "conf/../state"
    assert config.rpc.keytab == tmp_path / "conf/k"
    assert config.kafka["a"] == Secret(file=tmp_path / "conf/s/x")


def test_the_place_is_spelled_as_the_user_spelled_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "listen:\n  binery: 1801\n")
    monkeypatch.chdir(tmp_path)
    assert str(complaint(Path("bridge.yaml"))) == (
        "bridge.yaml:2:3: unknown key 'binery' in 'listen'; did you mean 'binary'?"
    )


# (in GOOD or the whole file, instead, a word of the complaint); § is where it must point to.
BROKEN: list[tuple[str, str, str]] = [
    # keys
    ("queue_manager:\n", "§queue_manger:\n", "did you mean 'queue_manager'"),
    ("  quota_kb:", "  §qouta_kb:", "did you mean 'quota_kb'"),
    ("  binary:", "  §Binary:", "did you mean 'binary'"),
    ("  ping:", "  §zzz:", "the keys here are host, binary"),
    ("  expired:", "  §expires:", "did you mean 'expired'"),
    ("  token_file:", "  §tokenfile:", "did you mean 'token_file'"),
    ("  users:", "  §user:", "did you mean 'users'"),
    ("topic_prefix:", "§topics_prefix:", "did you mean 'topic_prefix'"),
    ("{from: ", "{§form: ", "did you mean 'from'"),
    ("", "listen:\n  binary: 3\n  §binary: 4", "twice, first in line 2"),
    ("", "listen: {}\n§listen: {}", "twice"),
    ("", "peers: {SENDER: a, §sender: b}", "upper and lower case"),
    ("  11111111-2222", "  ? §[a]\n  : b\n  11111111-2222", "a key must be text"),
    # types
    ("insecure_nacks: false", "insecure_nacks: §yes", "true or false"),
    ("insecure_nacks: false", "insecure_nacks: §0", "true or false"),
    ("quota_kb: 8388608", "quota_kb: §lots", "a size in KB"),
    ("quota_kb: 8388608", "quota_kb: §1.5", "a size in KB"),
    ("quota_kb: 8388608", "quota_kb: §true", "a size in KB"),
    ("quota_kb: 8388608", "quota_kb: §null", "a size in KB"),
    ("quota_kb: 8388608", "quota_kb: §[1]", "not a list"),
    ("names: [BRIDGE01", "names: §BRIDGE01 #", "must be auto or a list"),
    ("names: [BRIDGE01", "names: [§7", "put it in quotes"),
    ("names: [BRIDGE01", "names: [§'a b'", "a host name"),
    ("names: [BRIDGE01", "names: [§{a: b}", "not a group of keys"),
    ("names: [BRIDGE01", "names: [§''", "a host name"),
    ("  host: 0.0.0.0", "  host: §[::]", "a host name"),
    ("  host: 0.0.0.0", "  host: §http://here/", "a host name"),
    ("data: /var/lib/msmq-bridge", "data: §5", "put it in quotes"),
    ("data: /var/lib/msmq-bridge", "data: §~", "a path"),
    ("data: /var/lib/msmq-bridge", "data: §''", "a path"),
    ("data: /var/lib/msmq-bridge", 'data: §"a\\0b"', "a path"),
    ("data: /var/lib/msmq-bridge", "data: §[a]", "a path"),
    ("data: /var/lib/msmq-bridge", "data: §~nobody-of-this-name/x", "a user that exists"),
    ("users: users.yaml", "users: §{a: b}", "a path"),
    ("mappings: mappings/", "mappings: §{queues: []}", "a path"),
    ("token_file: admin.token", "token_file: §1", "put it in quotes"),
    ("admin:\n  token_file:", "admin: §admin.token\n#", "must have keys"),
    ("", "rpc:\n  §- minimum_level: none", "must have keys"),
    ("", "listen: §9180", "must have keys"),
    # ranges
    ("binary: 1801", "binary: §65536", "0 to 65535"),
    ("binary: 1801", "binary: §-1", "0 to 65535"),
    ("binary: 1801", "binary: §'1801'", "0 to 65535"),
    ("ping: 3527", "ping: §off", "or null"),
    ("srmp: 80 ", "srmp: §80/tcp ", "or null"),
    ("admin: 9180", "admin: §127.0.0.1:9180", "or null"),
    ("quota_kb: 8388608", "quota_kb: §-1", "1 or more"),
    ("quota_kb: 8388608", "quota_kb: §99999999999999999999999", "1 or more"),
    ("clock_skew_s: 0", "clock_skew_s: §-0.5", "a number of seconds"),
    ("clock_skew_s: 0", "clock_skew_s: §5m", "a number of seconds"),
    ("clock_skew_s: 0", "clock_skew_s: §00:05:00", "a number of seconds"),
    ("clock_skew_s: 0", "clock_skew_s: §.nan", "a number of seconds"),
    ("clock_skew_s: 0", "clock_skew_s: §.inf", "a number of seconds"),
    ("release_after_s: 300", "release_after_s: §300s", "a number of seconds"),
    ("release_after_s: 300", "release_after_s: §0", "more than 0"),
    ("data: /var", "shards: §0\ndata: /var", "1 to 256"),
    ("data: /var", "shards: §257\ndata: /var", "1 to 256"),
    ("data: /var", "shards: §two\ndata: /var", "1 to 256"),
    # words
    ("minimum_level: privacy", "minimum_level: §privcy", "did you mean 'privacy'"),
    ("minimum_level: privacy", "minimum_level: §6", "one of none, connect"),
    ("expired: deliver", "expired: §drop", "one of deliver, discard"),
    ("expired: deliver", "expired: §false", "one of deliver, discard"),
    # GUIDs, addresses, URLs
    ("id: 3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77", "id: §3f8a0c5e", "a GUID without braces"),
    ("id: 3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77", "id: §12345", "a GUID without braces"),
    (
        "id: 3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77",
        "id: §'{3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77}'",
        "without braces",
    ),
    (
        "id: 3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77",
        "id: §{3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77}",
        "without braces",
    ),
    (
        "id: 3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77",
        "id: §3g8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77",
        "a GUID",
    ),
    (
        "id: 3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77",
        "id: §00000000-0000-0000-0000-000000000000",
        "all zeros",
    ),
    ("127.0.0.1:1801", "§127.0.0.1:0", "an address like"),
    ("127.0.0.1:1801", "§127.0.0.1:70000", "an address like"),
    ("127.0.0.1:1801", "§'127.0.0.1:'", "an address like"),
    ("127.0.0.1:1801", "§'[::g]:1801'", "an address like"),
    ("127.0.0.1:1801", "§'[1.2.3.4]:1801'", "an address like"),
    ("127.0.0.1:1801", "§tcp://host:1801", "an address like"),
    ("127.0.0.1:1801", "§1801", "put it in quotes"),
    ("127.0.0.1:1801", "§[a, b]", "an address like"),
    ("  11111111-2222-3333-4444-555555555555:", "  §'{1111}':", "without braces"),
    ("  11111111-2222-3333-4444-555555555555:", "  §'a b':", "a host name"),
    ("", "peers: §[a]", "must have keys"),
    ('redirect_in: [{from: "', 'redirect_in: §{from: "a", to: "b"}\n  #', "must be a list"),
    ('redirect_in: [{from: "', 'redirect_in: [§"a -> b"]\n  #', "must have keys"),
    ('redirect_in: [{from: "', 'redirect_in: [§{from: "http://a/"}]\n  #', "to' is missing"),
    ('redirect_in: [{from: "', "redirect_in: [§{}]\n  #", "is missing"),
    ('"http://bridge01/msmq/ext/*"', "§'ftp://bridge01/*'", "http:// or https://"),
    ('"http://bridge01/msmq/ext/*"', "§'http://*'", "http:// or https://"),
    ('"http://bridge01/msmq/ext/*"', "§'http://a/*/b'", "at its end"),
    ('"http://bridge01/msmq/ext/*"', "§5", "put it in quotes"),
    ('"http://bridge01/msmq/private$/orders"', "§'http://bridge01/*'", "only 'from' may have"),
    ("redirect_out: []", "redirect_out: [{from: http://a/, to: §b}]", "http:// or https://"),
    ("[sender, loopback]", "[§'not a host']", "a network"),
    ("[sender, loopback]", "[sender, §10.0.0.1/8]", "a network"),
    ("[sender, loopback]", "[sender, §'1:2:3']", "a network"),
    ("[sender, loopback]", "§sender", "must be a list"),
    # Kafka
    ("topic_prefix: _msmq-bridge", "topic_prefix: §a/b", "letters, digits"),
    ("topic_prefix: _msmq-bridge", "topic_prefix: §'a b'", "letters, digits"),
    ("topic_prefix: _msmq-bridge", "topic_prefix: §''", "1 to 240"),
    ("topic_prefix: _msmq-bridge", "topic_prefix: §" + "a" * 241, "1 to 240"),
    ("topic_prefix: _msmq-bridge", 'topic_prefix: §"a\\n"', "letters, digits"),
    ("topic_prefix: _msmq-bridge", "topic_prefix: §7", "put it in quotes"),
    ("servers: broker1:9092", "servers: §[broker1, broker2]", "text, a number"),
    ("servers: broker1:9092", "servers: §null", "text, a number"),
    ("servers: broker1:9092", "servers: {§path: x}", "the keys here are file, env"),
    ("servers: broker1:9092", "servers: §{file: x, env: Y}", "either a file or an environment"),
    ("servers: broker1:9092", "servers: §{}", "either a file or an environment"),
    ("servers: broker1:9092", "servers: {env: §[a]}", "text"),
    ("  bootstrap.servers: b", "  transactional.id: §mine\n  b: b", "set by the bridge"),
    ("  bootstrap.servers: b", "  enable.idempotence: §false\n  b: b", "set by the bridge"),
    ("  bootstrap.servers: b", "  isolation.level: §read_uncommitted\n  b: b", "leave it out"),
    ("  bootstrap.servers: b", "  acks: §1\n  b: b", "leave it out"),
    ("", "kafka: §broker1:9092", "must have keys"),
    ("", "§- a", "the file must have keys"),
    ("", "§hello", "the file must have keys"),
    ("", "listen: 9180\n  §x: 1", "indentation"),
    # listeners that would take each other's port
    ("srmp: 80 ", "srmp: §1801 ", "listen.srmp and listen.binary are both 1801"),
    ("admin: 9180", "admin: §135", "listen.admin and listen.endpoint_mapper"),
    # not YAML
    ("  binary: 1801", "\t§binary: 1801", "indent with spaces"),
    ("names: [BRIDGE01, ", 'names: ["A§\\q", ', "double quotes"),
    ("  expired: deliver", "  expired: deliver\n §  x: 1", "not YAML"),
    ("mappings: mappings/", "mappings: 'mappings/§", "not YAML"),
    ("listen:\n", "listen: a§: b\n", "quote text"),
    ("data: /var/lib", "data: §*anchor\n#", "needs quotes"),
    ("data: /var/lib", "data: §@x\n#", "not YAML"),
    ("data: /var/lib", "data: §!!python/object/apply:os.system [x]\n#", "a path"),
    ("data: /var/lib", "data: §!secret x\n#", "tag"),
    ("data: /var/lib", "data: §!!int x\n#", "not a value of type int"),
    ("mappings: mappings/", "mappings: a\n§---\nb: c", "one document"),
    ("data: /var/lib", "data: a§\x07\n#", "not allowed"),
]


@pytest.mark.parametrize(("old", "new", "word"), BROKEN, ids=[new[:60] for _, new, _ in BROKEN])
def test_a_bad_file_is_named_with_its_line_and_column(
    tmp_path: Path, old: str, new: str, word: str
) -> None:
    assert old in GOOD
    path, where = write(tmp_path, GOOD.replace(old, new, 1) if old else new)
    error = complaint(path)
    assert word in str(error)
    if error.what.startswith("not YAML"):  # the parser's column is near enough, its line is right
        assert error.where.rsplit(":", 1)[0] in _lines(where)
    else:
        assert error.where == where


def _lines(where: str) -> tuple[str, str]:
    """An unclosed quote is noticed at the end of the text."""
    file, line, _ = where.rsplit(":", 2)
    return f"{file}:{line}", f"{file}:{int(line) + 1}"


def test_there_are_enough_broken_files() -> None:
    assert len(BROKEN) >= 60


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (number, line)
        for number, line in enumerate(GOOD.splitlines(), start=1)
        if re.match(r"\s*[a-z_]+:", line)
    ],
)
@pytest.mark.parametrize("change", ["misspell", "repeat", "nest"])
def test_any_line_can_go_wrong(tmp_path: Path, number: int, line: str, change: str) -> None:
    lines = GOOD.splitlines()
    indent = line[: len(line) - len(line.lstrip())]
    key = line.strip().partition(":")[0]
    if change == "misspell":
        lines[number - 1] = line.replace(key, key + "q", 1)
    elif change == "repeat":
        lines.insert(number - 1, f"{indent}{key}: null")
        number += 1
    else:
        lines[number - 1] = f"{indent}{key}: [[[1]]]"
        lines = lines[:number]
    path, _ = write(tmp_path, "\n".join(lines) + "\n")
    error = complaint(path)
    assert error.where.startswith(f"{path}:{number}:")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    start=st.integers(0, len(GOOD)),
    length=st.integers(0, 40),
    insert=st.text(alphabet=string.printable + "é\x00\u2028", max_size=12),
)
def test_no_text_gives_a_traceback(tmp_path: Path, start: int, length: int, insert: str) -> None:
    path, _ = write(tmp_path, GOOD[:start] + insert + GOOD[start + length :])
    refused: ConfigError | None = None
    try:
        load_config(path)
    except ConfigError as error:
        refused = error
    if refused is not None:
        assert len(str(refused).splitlines()) == 1
        assert re.match(rf"{re.escape(str(path))}:\d+:\d+\Z", refused.where)


# --- secrets ---------------------------------------------------------------------------------


def test_secrets_come_from_files_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    monkeypatch.setenv("KEY_PASSWORD", "other")
    text = """\
kafka:
  sasl.password: {file: password}
  ssl.key.password: {env: KEY_PASSWORD}
  linger.ms: 5
  socket.keepalive.enable: true
  acks: all
"""
    config = load_config(write(tmp_path, text)[0])
    assert "s3cret" not in repr(config)
    assert kafka_properties(config) == {
        "sasl.password": "s3cret",
        "ssl.key.password": "other",
        "linger.ms": 5,
        "socket.keepalive.enable": True,
        "acks": "all",
    }
    line = "librdkafka: s3cret and other, but not 5"
    assert SECRETS.hide(line) == "librdkafka: *** and ***, but not 5"


@pytest.mark.parametrize(
    ("secret", "word"),
    [
        (Secret(env="NOT_SET_ANYWHERE"), "is not set"),
        (Secret(file=Path("/nonexistent/secret")), "cannot be read"),
        (Secret(file=Path("/")), "cannot be read"),
    ],
)
def test_a_secret_that_is_not_there(secret: Secret, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as caught:
        kafka_properties(Config(kafka={"sasl.password": secret}))
    assert caught.value.where == "kafka.sasl.password"
    assert len(str(caught.value).splitlines()) == 1


# --- the examples ----------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]


def test_the_example_configuration_is_every_default() -> None:
    example = ROOT / "examples/bridge.yaml"
    assert load_config(example) == msgspec.structs.replace(
        Config(), mappings=example.parent / "mappings"
    )


def test_the_example_names_every_key_with_its_default(tmp_path: Path) -> None:
    text = (ROOT / "examples/bridge.yaml").read_text(encoding="utf-8")
    path = tmp_path / "bridge.yaml"
    path.write_text(re.sub(r"(?m)^( *)# ([\w.-]+: )", r"\1\2", text), encoding="utf-8")
    config = load_config(path)
    samples = {"queue_manager.id", "queue_manager.names", "peers", "kafka", "mappings"}
    for name, value, default in _leaves(config, Config()):
        assert name in samples or value == default, name
        assert re.search(rf"(?m)^ *(# )?{name.rpartition('.')[2]}:", text), name
    assert config.peers
    assert config.kafka


def _leaves(
    config: msgspec.Struct, default: msgspec.Struct, name: str = ""
) -> list[tuple[str, object, object]]:
    found: list[tuple[str, object, object]] = []
    for field in msgspec.structs.fields(config):
        value, other = getattr(config, field.name), getattr(default, field.name)
        path = f"{name}.{field.encode_name}".lstrip(".")
        if isinstance(value, msgspec.Struct):
            found += _leaves(value, other, path)
        else:
            found.append((path, value, other))
    return found


@pytest.mark.parametrize(
    ("text", "listed", "looks_up"),
    [
        ("auto", (), True),
        ("[auto]", (), True),
        ("[BRIDGE01, auto]", ("BRIDGE01",), True),
        ("[BRIDGE01]", ("BRIDGE01",), False),
        ("[]", (), False),
        ("[autobahn]", ("autobahn",), False),
    ],
)
def test_names_that_the_name_service_knows(
    tmp_path: Path, text: str, listed: tuple[str, ...], looks_up: bool
) -> None:
    path, _ = write(tmp_path, f"queue_manager: {{names: {text}}}\n")
    manager = load_config(path).queue_manager
    assert (manager.listed_names, manager.looks_up_names) == (listed, looks_up)
