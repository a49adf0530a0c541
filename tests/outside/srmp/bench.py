"""What the tests of SRMP share: the appliance's settings, and what its consumers see."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from tests.outside.appliance import HOST, Appliance, Settings
from tests.outside.reader import Reader
from tests.outside.records import Record
from tests.outside.srmp.catcher import Catcher
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import Flow, url

NAMES = [HOST, "127.0.0.1", "machine2"]
QUEUES: dict[str, dict[str, object]] = {
    "simpleq": {},
    "tsimpleq": {"transactional": True},
    "full": {"quota_kb": 4},
    "fulltx": {"quota_kb": 4, "transactional": True},
    "signed": {"authenticate": "required"},
    "signedtx": {"authenticate": "required", "transactional": True},
    "closed": {"allow": ["10.9.0.0/16"]},
    "open": {"allow": ["127.0.0.0/8"]},
    "public": {"queue": "catalog"},
    "mine": {"allow": ["127.0.0.2/32"]},
    "minetx": {"allow": ["127.0.0.2/32"], "transactional": True},
}
PEER, PEER_IP = "senderbox", "127.0.0.5"


def settings(catcher: Catcher) -> Settings:
    """The machines of the specification's examples are `machine2` (us) and `machine1` (them)."""
    redirect_in = {
        f"http://{HOST}/msmq/ext/one": url("plain"),
        f"http://{HOST}/msmq/ext/*": url("plain2"),
        "http://nat.example.com/msmq/in/*": url("plain2"),
        "http://nat.example.com/msmq/in/late": url("plain"),  # the one before takes it
    }
    here = f"http://127.0.0.1:{catcher.port}/"
    return Settings(
        queues=QUEUES,
        manager={"names": NAMES},
        peers={PEER: f"{PEER_IP}:1801"},
        listen={"srmp": 0},
        srmp={
            "redirect_in": [{"from": one, "to": to} for one, to in redirect_in.items()],
            "redirect_out": [{"from": "http://machine1/*", "to": here}],
            "receipt_targets": ["sender", "loopback", "machine1"],
        },
    )


class Topics(Reader):
    """Whole topics, not only what one source sent."""

    def __init__(self, appliance: Appliance) -> None:
        self._appliance = appliance
        names = [appliance.topic(name) for name in appliance.queues]
        super().__init__(appliance.bootstrap, [*names, appliance.audit_topic])

    def all(self, name: str) -> list[Record]:
        """Of one queue; in order of offsets per partition."""
        self._catch_up()
        return list(self._records[self._appliance.topic(name)])

    def anywhere(self, wanted: Callable[[Record], bool]) -> list[Record]:
        """In the topic of any queue."""
        self._catch_up()
        names = [self._appliance.topic(name) for name in self._appliance.queues]
        return [one for name in names for one in self._records[name] if wanted(one)]

    def with_body(self, body: bytes) -> list[Record]:
        return self.anywhere(lambda record: record.value == body)

    def with_id(self, identity: str) -> list[Record]:
        return self.anywhere(lambda record: record.header.get("msmq.id") == identity.encode())

    def by_id(self) -> Mapping[str, list[Record]]:
        """All there is now, looked up once for many messages."""
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self.anywhere(lambda _: True):
            found[record.header["msmq.id"].decode()].append(record)
        return found

    def count(self, bodies: Iterable[bytes]) -> list[int]:
        """How often each of them is there."""
        found = Counter(record.value for record in self.anywhere(lambda _: True))
        return [found[body] for body in bodies]

    def audited(self, text: str) -> list[Record]:
        """Verdicts that mention it."""
        self._catch_up()
        return [one for one in self._records[self._appliance.audit_topic] if one.mentions(text)]

    def numbers(self, name: str, flow: Flow) -> list[int]:
        """The messages of one stream, in their order; they lie in one partition. DM-36"""
        prefix = f"{flow.name} ".encode()
        records = [one for one in self.all(name) if one.value.startswith(prefix)]
        assert len({one.partition for one in records}) <= 1, records
        return [int(one.value[len(prefix) :]) for one in records]


def settle(poster: Poster, catcher: Catcher, name: str = "settled") -> None:
    """Returns when a stream receipt for a message sent now is there.

    Whatever the appliance wanted to say about earlier messages, it has said by then: their timers
    were started before, and all run for the same time. SR-34
    """
    box = catcher.box()
    flow = Flow(to=url("orders"), receipts=box.url, name=name)
    assert poster.post(flow.mail(1)) == 200
    box.wait_last(1)
