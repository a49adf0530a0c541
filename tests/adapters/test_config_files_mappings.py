"""The mapping files (design 3.3): what is right is read, what is wrong is named."""

import re
from pathlib import Path

import pytest

from bridge.adapters.config_files import load_mappings
from bridge.model.errors import ConfigError
from tests.adapters.test_config_files import ROOT, write


def test_the_demo_mappings() -> None:
    mappings = load_mappings(ROOT / "mappings/demo.yaml").by_name()
    assert mappings["private$\\demo"].transactional
    assert mappings["private$\\demo"].topic_name == "demo"
    assert not mappings["private$\\inbox"].transactional
    assert mappings["private$\\inbox"].topic_name == "inbox"


def mapping_complaint(path: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_mappings(path)
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.mend
    return caught.value


def test_mappings_and_their_defaults(tmp_path: Path) -> None:
    text = r"""
queues:
  - queue: private$\orders
    topic: orders
    transactional: true
    mode: forward
    key: message_id
    order: stream
    timestamp: arrival
    value: body
    headers: {include: all, prefix: msmq., cloudevents: false}
    quota_kb: 1048576
    journal_quota_kb: 10
    oversize: reject
    authenticate: none
    encrypt: optional
  - {queue: Public Queue}
  - {queue: PRIVATE$\In, topic: "x.{queue}"}
defaults: {unknown: reject, timestamp: sent, key: label}
"""
    mappings = load_mappings(write(tmp_path, text, "m.yaml")[0])
    orders, public, inbox = mappings.queues
    assert (orders.queue, orders.timestamp, orders.key) == (
        "private$\\orders",
        "arrival",
        "message_id",
    )
    assert (orders.quota_kb, orders.encrypt) == (1048576, "optional")
    assert (public.topic_name, public.timestamp, public.key) == ("Public-Queue", "sent", "label")
    assert (inbox.queue, inbox.topic_name) == ("private$\\In", "x.In")
    assert mappings.by_name()["private$\\in"] is inbox


def test_who_may_send_and_what_is_copied(tmp_path: Path) -> None:  # DM-14, DM-30
    text = r"""
queues:
  - queue: private$\orders
    authenticate: required
    encrypt: required
    journal: orders.journal
    allow:
      - 3F8A0C5E-6A0B-4C55-9F0E-0D3C2B1A4F77
      - s-1-5-21-1-2-3-1001
      - 10.1.2.3
      - 10.0.0.0/8
      - fd00::/8
  - {queue: open}
  - {queue: closed, allow: []}
"""
    orders, anybody, nobody = load_mappings(write(tmp_path, text, "m.yaml")[0]).queues
    assert (orders.authenticate, orders.encrypt) == ("required", "required")
    assert orders.journal == "orders.journal"
    assert orders.allow == (
        "3F8A0C5E-6A0B-4C55-9F0E-0D3C2B1A4F77",
        "s-1-5-21-1-2-3-1001",
        "10.1.2.3",
        "10.0.0.0/8",
        "fd00::/8",
    )
    assert (anybody.allow, anybody.journal) == (None, None)
    assert nobody.allow == ()  # not the same: nobody may


def test_a_folder_is_read_as_one(tmp_path: Path) -> None:
    write(tmp_path, "queues: [{queue: b}]", "b.yaml")
    write(tmp_path, "queues: [{queue: a}]\ndefaults: {transactional: true}", "a.yaml")
    write(tmp_path, "queues: [{queue: c, transactional: false}]", "c.yml")
    write(tmp_path, "not: mappings", "a.test.yaml")
    write(tmp_path, "not: mappings", ".hidden.yaml")
    write(tmp_path, "not: mappings", "readme.txt")
    queues = load_mappings(tmp_path).queues
    assert [(q.queue, q.transactional) for q in queues] == [("a", True), ("b", True), ("c", False)]


@pytest.mark.parametrize("text", ["", "queues:\n", "queues: []\ndefaults:\n"])
def test_no_queues_is_fine(tmp_path: Path, text: str) -> None:
    assert load_mappings(write(tmp_path, text, "m.yaml")[0]).queues == ()


def test_a_queue_in_two_files_is_named_at_both_places(tmp_path: Path) -> None:
    write(tmp_path, "queues:\n  - queue: private$\\Orders\n", "a.yaml")
    _, where = write(tmp_path, "queues:\n\n  - {topic: x, queue: §PRIVATE$\\orders}\n", "b.yaml")
    error = mapping_complaint(tmp_path)
    assert error.where == where
    assert f"{tmp_path / 'a.yaml'}:2:12" in str(error)


def test_defaults_in_two_files_are_named_at_both_places(tmp_path: Path) -> None:
    write(tmp_path, "defaults: {}", "a.yaml")
    _, where = write(tmp_path, "queues: []\n§defaults: {}", "b.yaml")
    error = mapping_complaint(tmp_path)
    assert error.where == where
    assert f"{tmp_path / 'a.yaml'}:1:1" in str(error)


def test_mappings_that_are_not_there(tmp_path: Path) -> None:
    assert "no such" in str(mapping_complaint(tmp_path / "nothing"))


# An entry of `queues` (or a whole file), and a word of the complaint; § is where it must point to.
BROKEN_MAPPINGS: list[tuple[str, str]] = [
    ("queue: a, mode: §kept", "forward"),
    ("defaults: {mode: §kept}", "forward"),
    # names of readers
    ("queue: a, allow_read: [§'']", "of a user"),
    ("queue: a, allow_read: [bob, §'DOM\\']", "of a user"),
    ("defaults: {allow_read: [§'\\bob']}", "of a user"),
    ("queue: a, allow_read: §bob", "list"),
    # rules that contradict each other
    ("queue: a, key: none, order: §key", "nothing to pick a partition by"),
    ("defaults: {key: none, order: §key}", "nothing to pick a partition by"),
    ("defaults: {key: none}\nqueues:\n- {queue: a, order: §key}", "nothing to pick"),
    ("queue: a, key: §header:x", "which no record has"),
    ("queue: a, key: §header:msmq.lable", "did you mean 'msmq.label'"),
    ("queue: a, topic: t, journal: §t", "its journal is its topic"),
    ("queue: a, journal: §a", "its journal is its topic"),
    ("queue: a, journal: §'{queue}'", "its journal is its topic"),
    ("queue: a*, journal: §'{queue}'", "its journal is its topic"),
    ("queue: a, journal: §'{label}.journal'", "use only {queue}"),
    ("queue: a, headers: {include: [msmq.id, §msmq.lable]}", "did you mean 'msmq.label'"),
    ("queue: a, headers: {exclude: [§msmq.prority]}", "did you mean 'msmq.priority'"),
    ("queue: a, headers: {exclude: [§label]}", "did you mean 'msmq.label'"),
    ("queue: a, headers: {exclude: [msmq.id, §msmq.id]}", "twice"),
    ("queue: a, headers: {include: none, exclude: [§msmq.id]}", "include says none"),
    ("queue: a, headers: {include: [msmq.id], exclude: [§msmq.id]}", "include says it"),
    ("queue: a, headers: {rename: {msmq.titel: §x}}", "is no header"),
    ("queue: a, headers: {rename: {msmq.label: x, msmq.id: §x}}", "as 'msmq.label' is called"),
    ("queue: a, headers: {rename: {msmq.label: §msmq.id}}", "as 'msmq.id' is called"),
    ("queue: a, headers: {include: [msmq.id], rename: {msmq.label: §x}}", "left out"),
    ("queue: a, headers: {add: {msmq.label: §x}}", "another rule makes"),
    ("queue: a, headers: {exclude: [msmq.label], add: {msmq.label: §x}}", "belongs to the bridge"),
    ("queue: a, headers: {prefix: '', add: {label: §x}}", "another rule makes"),
    ("queue: a, headers: {rename: {msmq.label: x}, add: {x: §y}}", "another rule makes"),
    ("queue: a, headers: {prefix: §ce_, cloudevents: true}", "and so does headers.cloudevents"),
    ('queue: a, headers: {prefix: §"a\\n"}', "control character"),
    ("queue: a, claims: §http://host/x", "s3://bucket/prefix"),
    ("queue: a, claims: §s3://B", "s3://bucket/prefix"),
    ("queue: a, claims: §''", "s3://bucket/prefix"),
    ("queue: a, key: §'json:$.a['", "has a path that"),
    ("queue: a, key: §json:$", "json:$.path"),
    ("queue: §private$*", "write private$\\*"),
    ("queue: §private$\\order_queue$", "queue manager itself"),
    ("queues: [{queue: a*}, {queue: §A*}]", "mapped at"),
    # keys
    ("§queue: {}", "did you mean 'queues'"),
    ("queue: a, §topics: b", "did you mean 'topic'"),
    ("queue: a, §transactionel: true", "did you mean 'transactional'"),
    ("queue: a, headers: {§includes: all}", "did you mean 'include'"),
    ("queue: a, topic: x, §topic: y", "twice"),
    ("defaults: {§queue: a}", "unknown key 'queue'"),
    ("queues: [§{topic: a}]", "queue' is missing"),
    ("queues: §{a: b}", "must be a list"),
    ("queues: [§a]", "must have keys"),
    ("§- queue: a", "the file must have keys"),
    # types and words
    ("queue: a, transactional: §yes", "true or false"),
    ("queue: a, mode: §forwards", "did you mean 'forward'"),
    ("queue: a, key: §body", "stream, message_id"),
    ("queue: a, key: §'header:'", "header:NAME"),
    ("queue: a, key: §json:order.id", "json:$.path"),
    ("queue: a, timestamp: §now", "arrival, sent"),
    ("queue: a, quota_kb: §0", "1 or more"),
    ("queue: a, quota_kb: §1GB", "1 or more"),
    ("queue: a, journal_quota_kb: §-1", "1 or more"),
    ("queue: a, headers: §all", "must have keys"),
    ("queue: a, headers: {include: §some}", "all, none or a list"),
    ("queue: a, headers: {include: [§'']}", "the name of a header"),
    ("queue: a, headers: {add: {env: §1}}", "put it in quotes"),
    ("queue: a, headers: {rename: §[a]}", "must have keys"),
    ("queue: a, allow: §bob", "a list"),
    (
        "queue: a, allow: [§bob]",
        "GUID, a SID, an address, a network, GUID@network, cn:NAME or san:NAME",
    ),
    ("queue: a, allow: [S-1-1-0,\n    10.0.0.0/8,\n    §10.0.0.1/8]", "a network"),
    ("queue: a, allow: [§S-2-1]", "a SID"),
    ("queue: a, journal: §a/b", "legal Kafka topic"),
    ("queue: a, encrypt: §always", "none, optional, required"),
    ("defaults: {unknown: §create}", "did you mean 'auto-create'"),
    # names of queues and topics
    ("queue: §''", "1 to 124"),
    ("queue: §" + "q" * 125, "1 to 124"),
    ("queue: §private$\\", "1 to 124"),
    ("queue: §7", "put it in quotes"),
    ("queue: §null", "must be"),
    ("queue: §[a]", "must be"),
    ("queue: §SERVER\\private$\\orders", "without a computer's name"),
    ("queue: §.\\private$\\orders", "without a computer's name"),
    ("queue: §private$/orders", "write private$\\name"),
    ('queue: §"private$\\norders"', "double quotes"),
    ('queue: "private$§\\orders"', "double quotes"),
    ("queue: §a;journal", "has a ;"),
    ("queue: §a+b", "has a +"),
    ("queue: §'a,b'", "has a ,"),
    ("queue: §'a\"b'", 'has a "'),
    ("queue: a, topic: §a/b", "legal Kafka topic"),
    ("queue: a, topic: §'a b'", "legal Kafka topic"),
    ("queue: a, topic: §''", "legal Kafka topic"),
    ("queue: a, topic: §..", "legal Kafka topic"),
    ("queue: a, topic: §" + "t" * 250, "legal Kafka topic"),
    ("queue: a, topic: §'{body}'", "unknown placeholder"),
    ("queue: a, topic: §5", "put it in quotes"),
    ("queue: §..", "Kafka refuses"),
    ("queue: " + "q" * 124 + ", topic: §'{queue}{queue}{queue}'", "Kafka refuses"),
    # pairs
    ("queues: [{queue: a}, {queue: §A}]", "mapped at"),
    ("queues: [{queue: a}, {queue: §private$\\a}]", "share the topic"),
    ("queues: [{queue: a b}, {queue: §a+b}]", "has a +"),
]


@pytest.mark.parametrize(("text", "word"), BROKEN_MAPPINGS)
def test_a_bad_mapping_is_named_with_its_line_and_column(
    tmp_path: Path, text: str, word: str
) -> None:
    whole = (
        text if re.match(r"§?(queues:|queue: {|defaults:|- )", text) else f"queues:\n- {{{text}}}"
    )
    path, where = write(tmp_path, "# comment\n" + whole + "\n", "orders.yaml")
    error = mapping_complaint(path)
    assert word in str(error)
    if error.what.startswith("not YAML"):
        assert error.where.rsplit(":", 1)[0] == where.rsplit(":", 1)[0]
    else:
        assert error.where == where


@pytest.mark.parametrize(
    "text",
    [
        "queue: private$\\order*",
        "queue: order?, topic: all",
        "queue: a, topic: '{label}'",
        "queue: a, topic: 'x-{source}.{queue}'",
        "queue: a*, journal: '{queue}.journal'",
        "queue: a, value: text",
        "queue: a, value: json, oversize: chunk",
        "queue: a, value: envelope, oversize: claim-check, claims: s3://bucket/some/prefix",
        "queue: a, oversize: claim-check, claims: /var/claims",
        "queue: a, claims: null",
        "queue: a, order: key, key: label",
        "queue: a, key: header:msmq.label",
        "queue: a, key: header:title, headers: {rename: {msmq.label: title}}",
        "queue: a, key: header:ce_type, headers: {cloudevents: true}",
        "queue: a, key: json:$.order.id",
        "queue: a, headers: {cloudevents: true, add: {ce_type: com.example.order}}",
        "queue: a, headers: {include: none}",
        "queue: a, headers: {include: [msmq.label, msmq.soap.compound]}",
        "queue: a, headers: {exclude: [msmq.wire], prefix: '', add: {env: prod}}",
        "queue: a, headers: {rename: {msmq.label: msmq.id, msmq.id: msmq.label}}",
    ],
)
def test_the_whole_language_is_legal(tmp_path: Path, text: str) -> None:
    path, _ = write(tmp_path, f"queues:\n- {{{text}}}", "m.yaml")
    assert len(load_mappings(path).queues) == 1
    default = text.partition(", ")[2]
    if default and not re.search("topic|journal", default):
        load_mappings(write(tmp_path, f"defaults: {{{default}}}", "m.yaml")[0])


def test_two_queues_may_share_a_topic_if_one_says_so(tmp_path: Path) -> None:
    text = "queues: [{queue: a}, {queue: private$\\a, topic: a}]"
    assert len(load_mappings(write(tmp_path, text, "m.yaml")[0]).queues) == 2
