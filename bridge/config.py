"""Every setting of the appliance: frozen, with its default, read once (design 3.2).

The types carry their own rule and the words that a user reads when it is broken; the file itself
is read by `bridge.adapters.config_files`, which adds the line and the column. Cross-field rules
raise ConfigError with the option, relative to its struct, as `where` (`kafka/acks`).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from bridge.model.errors import ConfigError
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.hosts import address_text, canonical

MSMQ_PORT: Final = 1801

Port = Annotated[int, Meta(ge=0, le=65535, description="a port number (0 to 65535)")]


class DefaultPort(int):
    """A port that nobody wrote down. Where it cannot be had the listener stays off: who does not
    use it need not know of it."""


Seconds = Annotated[float, Meta(ge=0, le=31_536_000, description="a number of seconds (0 or more)")]
Kilobytes = Annotated[int, Meta(ge=1, le=0xFFFFFFFF, description="a size in KB (1 or more)")]
QueueManagerId = Annotated[
    Guid, Meta(description="a GUID without braces, like 3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77,")
]
HostName = Annotated[
    str,
    Meta(pattern=r"^[^\s\\/;,+\"*\x00-\x1f]{1,256}\Z", description="a host name or an IP address"),
]
TopicPrefix = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9._-]{1,240}\Z",
        description="1 to 240 letters, digits, dots, underscores or hyphens",
    ),
]
LeaseSeconds = Annotated[float, Meta(ge=1, le=300, description="a number of seconds (1 to 300)")]
PerAddress = Annotated[
    int, Meta(ge=1, le=1_000_000, description="a number of connections (1 to 1000000)")
]
Shards = Annotated[int, Meta(ge=1, le=256, description="a whole number from 1 to 256")]
Level = Literal["none", "connect", "call", "packet", "integrity", "privacy"]

_HOST_PORT: Final = re.compile(
    r"(?P<host>[^\s\[\]:/\\@]+|\[[0-9A-Fa-f:.]+(%[\w.-]{1,16})?\])(:(?P<port>\d{1,5}))?"
)
_PEER: Final = re.compile(r"[^\s\\/;,+\"{}*]{1,256}")
_URL: Final = re.compile(r"https?://[^\s/?#*]+(/[^\s*]*)?")


class Address(Struct, frozen=True):
    """Where to connect to."""

    host: str
    port: int = MSMQ_PORT

    @classmethod
    def parse(cls, text: str) -> Address:
        """From `host`, `host:port` or `[ipv6]:port`; ValueError if it is anything else."""
        found = _HOST_PORT.fullmatch(text)
        if found is None:
            raise ValueError("not an address")
        port = int(found["port"] or MSMQ_PORT)
        if not 1 <= port <= 65535:
            raise ValueError("no such port")
        host = found["host"]
        if host.startswith("["):
            host = address_text(ipaddress.IPv6Address(host[1:-1]))
        return cls(host, port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


PeerAddress = Annotated[
    Address, Meta(description="an address like 10.0.0.7:1801, sender01 or [fd00::7]:1801")
]


class PeerName(str):
    """GUID, host name or address of a sender as format names write it; case does not count."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> PeerName:
        if not _PEER.fullmatch(text):
            raise ValueError("not a peer's name")
        return cls(canonical(text))


Peer = Annotated[PeerName, Meta(description="a GUID without braces, a host name or an IP address")]


class ReceiptTarget(str):
    """`sender`, `loopback`, `*`, a host, host:port or a network in CIDR notation. SR-49"""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> ReceiptTarget:
        if text != "*" and "/" in text:
            ipaddress.ip_network(text)
        elif text != "*" and ":" in text and text.count(":") > 1 and not text.startswith("["):
            ipaddress.IPv6Address(text)
        elif text != "*":
            Address.parse(text)
        return cls(text)


class Router(str):
    """Address, network, GUID or GUID@network of a queue manager that hands on others' messages."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Router:
        guid, at, network = text.rpartition("@")
        if at:
            Guid.parse(guid)
        try:
            ipaddress.ip_network(network)
        except ValueError:
            if at:
                raise
            Guid.parse(text)
        return cls(text)


class QueueManagerConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who we are to MSMQ senders."""

    id: QueueManagerId | None = None
    """GUID of this queue manager; generated once and kept when absent."""
    names: Annotated[Literal["auto"], Meta(description="auto")] | tuple[HostName, ...] = ()
    """Every name and address senders use for us; empty = this host's own names. auto, alone or in
    the list: over HTTP also every name that the name service says leads to this machine."""
    quota_kb: Kilobytes = 8_388_608
    """Machine quota: what all queues together may hold."""
    insecure_nacks: bool = False
    """Send negative acknowledgments that tell a stranger which queues exist. DM-13"""
    clock_skew_s: Seconds = 0.0
    """Tolerance when a sender's times are judged."""
    pin_senders: Literal["off", "warn", "enforce"] = "warn"
    """A GUID that comes from another address than the one it is known at (`peers`, else where its
    first message was accepted from): enforce = it gets no session, warn = a line in the log."""
    adopt_streams: Literal["ask", "first"] = "ask"
    """A stream that was never seen here and begins in the middle (its sender's outgoing queue had
    messages at the cut-over): ask = it waits for `stream adopt`, first = it is taken up at once."""

    @property
    def listed_names(self) -> tuple[str, ...]:
        return () if self.names == "auto" else tuple(n for n in self.names if n != "auto")

    @property
    def looks_up_names(self) -> bool:
        return "auto" in (self.names, *self.names)

    def __post_init__(self) -> None:
        if self.id == NULL_GUID:
            raise ConfigError(
                "queue_manager.id is all zeros", where="id", mend="leave it out to get a new one"
            )


class ListenConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where we listen. Port 0 = any free port, null = that listener is off."""

    host: HostName = "0.0.0.0"
    """Address that every listener but `admin` binds to; `::` is all of IPv6 and IPv4."""
    binary: Port | None = MSMQ_PORT
    """TCP sessions, MS-MQQB."""
    ping: Port | None = 3527
    """UDP ping, MS-MQQB 2.1."""
    srmp: Port | None = DefaultPort(80)
    """Messages over HTTP, MC-MQSRM; off if nobody wrote it down and the port cannot be had."""
    srmp_tls: Port | None = None
    """Messages over HTTPS; off unless it is written down."""
    rpc: Port | None = DefaultPort(2103)
    """Remote read, MS-MQRR; if nobody wrote it down and the port is taken: 2114, 2125 and so on.
    The three RPC ports stay closed while no client can log on: see `rpc`."""
    rpc_qp: Port | None = DefaultPort(2105)
    """Remote read by old queue managers, MS-MQQP; likewise 2116, 2127 and so on."""
    endpoint_mapper: Port | None = DefaultPort(135)
    """Tells RPC clients the ports above; off if nobody wrote it down and it cannot be had."""
    lease: Port | None = 0
    """With `standby` only: the other appliance sees by it at once that this one has ended. Whoever
    connects is told a random name. Open it between the two."""
    admin: Port | None = 9180
    """The web page, the JSON API, /livez, /readyz and /metrics."""
    admin_host: HostName = "127.0.0.1"
    """Address that `admin` binds to."""
    per_address: PerAddress = 1024
    """Connections that one address (IPv6: one /64) may have, on `binary`, on the HTTP ports and on
    the RPC ports each. Beyond it its oldest unfinished handshake is closed, else its idlest
    session, else the newcomer. Raise it where more senders share one address (NAT)."""

    def __post_init__(self) -> None:
        taken: dict[int, str] = {}
        listeners = ("binary", "srmp", "srmp_tls", "rpc", "rpc_qp", "endpoint_mapper")
        for name in (*listeners, "lease", "admin"):
            port: int | None = getattr(self, name)
            if port and taken.setdefault(port, name) != name:
                raise ConfigError(
                    f"listen.{name} and listen.{taken[port]} are both {port}",
                    where=name,
                    mend="give one of them another port, 0 for any free one or null to turn it off",
                )


class Redirect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """URLs that match `from` are treated as `to`; a trailing * matches any rest. SR-14"""

    source: str = field(name="from")
    """URL to look for; may end in *."""
    target: str = field(name="to")
    """URL to use instead."""

    def __post_init__(self) -> None:
        for option, url in (("from", self.source.removesuffix("*")), ("to", self.target)):
            if not _URL.fullmatch(url):
                raise ConfigError(
                    f"{option!r} must be an http:// or https:// URL, not {url[:80]!r}",
                    where=option,
                    mend="only 'from' may have a *, at its end, after the host (SR-14)",
                )


class SrmpConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages over HTTP, MC-MQSRM."""

    certificate: Path | None = None
    """PEM chain for `listen.srmp_tls`, read again when it changes; absent = one of our own."""
    key: Path | None = None
    """PEM key of the certificate; absent = it is in the same file."""
    client_ca: Path | None = None
    """PEM certificates: `listen.srmp_tls` takes only clients that show a certificate which these
    have signed, and `allow` can name them (cn:NAME, san:NAME). `listen.srmp` asks for none. Read at
    the start."""
    tls: Literal["modern", "legacy"] = "modern"
    """legacy also takes TLS 1.0 and 1.1 with their ciphers, for old Windows: at the listener, for
    receipts and forwards, and in `send`."""
    ca_file: Path | None = None
    """PEM certificates that receipts and forwards over HTTPS trust; absent = this system's."""
    expired: Literal["deliver", "discard"] = "deliver"
    """What happens to a message whose time is over when it arrives."""
    redirect_in: tuple[Redirect, ...] = ()
    """Destinations that are rewritten on arrival; those on other hosts are sent on. SR-14, SR-15"""
    redirect_out: tuple[Redirect, ...] = ()
    """URLs that are reached at another host; one that leads to itself is an exception. SR-18"""
    receipt_redirect: tuple[Redirect, ...] = ()
    """URLs of stream receipts that are replaced."""
    stream_element: Literal["stream", "Stream"] = "stream"
    """How `send` spells that element: the text of MC-MQSRM has stream, its examples Stream. Both
    are understood."""
    receipt_targets: tuple[
        Annotated[
            ReceiptTarget, Meta(description="sender, loopback, *, a host, host:port or a network")
        ],
        ...,
    ] = (ReceiptTarget("sender"),)
    """Where receipts, and administration acks over binary sessions, may go beside `peers`: sender =
    the address that the message came from (a receipt for another host goes there, too), * =
    anywhere but loopback and link-local; never to listeners of our own."""

    def __post_init__(self) -> None:
        if self.key is not None and self.certificate is None:
            raise ConfigError(
                "srmp.key is there, srmp.certificate is not",
                where="key",
                mend="name the certificate of this key too",
            )


class AdminConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The admin port."""

    token_file: Path | None = None
    """File with the token for writes and for reads that name senders; absent = a generated one,
    admin.token in the data folder."""
    protect_reads: bool = False
    """All reads need the token or a client certificate, but /livez, /readyz and the bare page."""
    names: tuple[HostName, ...] = ()
    """Host names that clients use for this port, beside our addresses, our own names and
    queue_manager.names; another name is refused (DNS rebinding), but for /livez and /readyz."""
    certificate: Path | None = None
    """PEM chain: the port speaks HTTPS; read again when it changes."""
    key: Path | None = None
    """PEM key of the certificate; absent = it is in the same file."""
    client_ca: Path | None = None
    """PEM certificates; who shows one that they signed needs no token. Read at the start."""

    def __post_init__(self) -> None:
        for option in ("key", "client_ca"):
            if getattr(self, option) is not None and self.certificate is None:
                raise ConfigError(
                    f"admin.{option} is there, admin.certificate is not",
                    where=option,
                    mend="name the certificate too: without it there is no HTTPS",
                )


class RpcConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Remote read and clients. The RPC ports stay closed unless `users` or `keytab` is set, or
    `minimum_level` is none."""

    minimum_level: Level = "privacy"
    """The weakest RPC authentication level that is let in."""
    users: Path | None = None
    """YAML file: name -> {password: ...} or {nt_hash: ...}; absent = no NTLM. DOMAIN\\name is good
    for that domain only, a plain name without a domain, for `.`, WORKGROUP and our own names."""
    keytab: Path | None = None
    """Kerberos keys of this host; absent = no Kerberos."""
    old_ntlm: bool = False
    """Whether NTLM2-session responses (NTLMv1 with extended session security) are accepted, as XP
    and 2003 send them unless told otherwise. Plain NTLMv1 and LM never are."""
    release_after_s: Seconds = 300.0
    """An MS-MQRR receive that is not ended goes back to its queue after this time. An MS-MQQP
    receive has no timer: it goes back when its connection ends."""

    @property
    def is_open(self) -> bool:
        """Whether any client could pass: else there is nothing to listen for."""
        return bool(self.users or self.keytab) or self.minimum_level == "none"

    def __post_init__(self) -> None:
        if self.release_after_s <= 0:
            raise ConfigError(
                "rpc.release_after_s must be more than 0", where="release_after_s", mend="try 300"
            )


class LogConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lines on stderr."""

    format: Literal["auto", "text", "json"] = "auto"
    """auto: text on a terminal, JSON lines otherwise."""
    level: Literal["debug", "info", "warning", "error"] | None = None
    """absent = info, or warning with `serve --live`."""


class OtelConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Traces for OpenTelemetry; needs `pip install msmq-bridge[otel]`."""

    endpoint: str | None = None
    """URL of a collector (OTLP over HTTP); absent = OTEL_* of the environment, else no traces."""
    ratio: Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")] | None = None
    """Of sessions and batches; absent = OTEL_TRACES_SAMPLER, else all of them."""

    def __post_init__(self) -> None:
        if self.endpoint is not None and not _URL.fullmatch(self.endpoint):
            raise ConfigError(
                "otel.endpoint must be an http:// or https:// URL",
                where="endpoint",
                mend="try http://localhost:4318",
            )


class Secret(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value kept outside the file, looked up when the Kafka client is made; never in a log."""

    file: Path | None = None
    """The value is the text of this file, without the line end."""
    env: str | None = None
    """The value is this environment variable."""

    def __post_init__(self) -> None:
        if (self.file is None) == (not self.env):
            raise ConfigError(
                "a secret has either a file or an environment variable",
                mend="write {file: path} or {env: NAME}",
            )


Property = Annotated[
    str | int | float | bool | Secret,
    Meta(description="text, a number, true, false, {file: path} or {env: NAME}"),
]


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`bridge.yaml`."""

    queue_manager: QueueManagerConfig = QueueManagerConfig()
    """Who we are to MSMQ senders."""
    routers: tuple[
        Annotated[Router, Meta(description="an address, a network, a GUID or GUID@network")], ...
    ] = ()
    """Queue managers that may hand on messages of others; the messages of all others must carry
    the GUID of their session. A GUID alone is a claim: GUID@network asks for both."""
    peers: Mapping[Peer, PeerAddress] = {}
    """GUID or host name of a sender, in lower case -> where it is reached without a session."""
    listen: ListenConfig = ListenConfig()
    """Where we listen."""
    srmp: SrmpConfig = SrmpConfig()
    """Messages over HTTP."""
    admin: AdminConfig = AdminConfig()
    """The admin port."""
    rpc: RpcConfig = RpcConfig()
    """Remote read and clients."""
    log: LogConfig = LogConfig()
    """Lines on stderr."""
    otel: OtelConfig = OtelConfig()
    """Traces for OpenTelemetry."""
    kafka: Mapping[str, Property] = {}
    """librdkafka properties; without bootstrap.servers the embedded Kafka is started."""
    topic_prefix: TopicPrefix = "_msmq-bridge"
    """Of the topics and transactional ids we own; two appliances on one cluster need two."""
    data: Path = Path("/var/lib/msmq-bridge")
    """Folder for what can be rebuilt from Kafka; relative to the folder of the file."""
    mappings: Path = Path("mappings")
    """A mapping file or a folder of them; relative to the folder of the file."""
    shards: Shards = 2
    """Producers that run side by side; fixed when the state topic is created."""
    standby: bool = False
    """Wait while another appliance with this topic_prefix leads, take over when it is gone."""
    lease_s: LeaseSeconds = 6.0
    """A leader that is silent for so long is gone; brokers ask for 6 or more by default."""

    def __post_init__(self) -> None:
        for name, value in self.kafka.items():
            _check_property(name, value)
        if self.srmp.client_ca is not None and self.listen.srmp_tls is None:
            raise ConfigError(
                "srmp.client_ca is there, listen.srmp_tls is not",
                where="srmp/client_ca",
                mend="set listen.srmp_tls: clients show certificates over HTTPS only",
            )
        if self.standby and "bootstrap.servers" not in self.kafka:
            raise ConfigError(
                "a standby needs a Kafka that both appliances reach",
                where="standby",
                mend="set kafka.bootstrap.servers",
            )


# What exactly-once rests on (D1, D3): a property that we set ourselves, and its only value.
OWNED_PROPERTIES: Final[Mapping[str, tuple[str, ...]]] = {
    "transactional.id": (),
    "enable.idempotence": ("true",),
    "isolation.level": ("read_committed",),
    "enable.auto.commit": ("false",),
    "acks": ("all", "-1"),
    "request.required.acks": ("all", "-1"),
}


def _check_property(name: str, value: str | int | float | bool | Secret) -> None:
    allowed = OWNED_PROPERTIES.get(name)
    if allowed is not None and str(value).lower() not in allowed:
        raise ConfigError(
            f"kafka.{name} is set by the bridge, exactly-once rests on it",
            where=f"kafka/{name}",
            mend="leave it out",
        )
