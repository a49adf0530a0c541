"""The error tree.

BridgeError
├── ConfigError        bad configuration: what, where, how to mend it
├── Unavailable        something outside is down; hold the acks and try again
│   ├── SinkUnavailable    Kafka did not (or may not have) taken a batch
│   ├── BrokerFailed       the embedded broker cannot start or has stopped
│   └── RpcUnavailable     an RPC server cannot be reached, hung up, or says nothing
├── BindRefused        an RPC server does not let us in, or does not serve what we want
│   └── InterfaceRefused   it does not serve this interface
├── IllegalName        a queue name that does not follow MS-MQMQ 2.1
└── ProtocolError      a peer broke the protocol; ends its session
    └── WireError      its bytes do not follow the layout
"""


class BridgeError(Exception):
    """Anything that a user should read as one line."""


class ConfigError(BridgeError):
    """Bad configuration. `where` is `file:line:column` or an option's name."""

    def __init__(self, what: str, *, where: str = "", mend: str = "") -> None:
        self.what, self.where, self.mend = what, where, mend
        super().__init__(": ".join(filter(None, (where, what))) + (f"; {mend}" if mend else ""))


class Unavailable(BridgeError):
    """The outside world is down."""


class SinkUnavailable(Unavailable):
    """A batch was not, or may not have been, committed: read back what happened."""


class BrokerFailed(Unavailable):
    """The embedded Kafka cannot be started, or has died."""


class RpcUnavailable(Unavailable):
    """No connection, or no answer in time. A call may have run all the same."""


class BindRefused(BridgeError):
    """An RPC server does not know us, or not the interface; trying again does not help."""


class InterfaceRefused(BindRefused):
    """An RPC server does not serve this interface; it may serve another one."""


class IllegalName(BridgeError):
    """Not a format name or path name. MS-MQMQ 2.1, MQ_ERROR_ILLEGAL_FORMATNAME"""

    HRESULT = 0xC00E001E

    def __init__(self, text: str, why: str) -> None:
        self.text, self.why = text, why
        super().__init__(f"{text!r}: {why}")


class ProtocolError(BridgeError):
    """A peer broke the protocol. `reason` is a short, countable label."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}" if detail else reason)


class WireError(ProtocolError):
    """Bytes that break a layout: which field, its value, the rule it breaks."""

    def __init__(self, field: str, value: object, rule: str) -> None:
        self.field, self.value, self.rule = field, value, rule
        super().__init__("malformed", f"{field}={value!r} ({rule})")
