r"""Which queue a QUEUE_FORMAT means. RR-17, digest remote-read.md 3.1"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.remote_read.naming import Home, queue_of
from bridge.core.retained.errors import Refused
from bridge.model.guid import Guid
from bridge.wire.rpc.queue_format import QueueFormat
from tests.core.messages import LOCAL, OTHER

HOME = Home(
    guid=LOCAL,
    is_ours={"bridge01", "bridge01.example.com", "10.0.0.1"}.__contains__,
    path_of={9: "private$\\Orders"}.get,
)
Q = "OS:bridge01\\private$\\Orders"


def direct(text: str | None, suffix: int = 0, kind: int = 3) -> QueueFormat:
    return QueueFormat(kind=kind, suffix=suffix, text=text)


@pytest.mark.parametrize(
    ("name", "queue"),
    [
        (direct(Q), "private$\\orders"),
        (direct("os:BRIDGE01.example.com.\\PRIVATE$\\ORDERS"), "private$\\orders"),
        (direct("TCP:10.0.0.1\\private$\\orders"), "private$\\orders"),
        (direct("OS:bridge01\\Public"), "public"),
        (direct(Q + ";journal", 0x81), "private$\\orders;journal"),
        (direct(Q + ";JOURNAL"), "private$\\orders;journal"),  # from the text alone
        (direct(Q, 0x81), "private$\\orders;journal"),  # from the byte alone
        (direct("OS:bridge01\\SYSTEM$;DEADLETTER", 0x82), "system$;deadletter"),
        (direct("OS:bridge01\\SYSTEM$;DEADXACT", 0x83), "system$;deadxact"),
        (direct("OS:bridge01\\SYSTEM$;JOURNAL", 0x81), "system$;journal"),
        (direct("OS:bridge01\\SYSTEM$", 0x82), "system$;deadletter"),
        (direct(Q + ";Retry", 5, kind=8), "private$\\orders;retry"),
        (direct(Q + ";Retry", 0, kind=8), "private$\\orders;retry"),
        (QueueFormat(kind=2, guid=LOCAL, number=9), "private$\\orders"),
        (QueueFormat(kind=2, suffix=0x81, guid=LOCAL, number=9), "private$\\orders;journal"),
        (QueueFormat(kind=4, suffix=0x81, guid=LOCAL), "system$;journal"),
        (QueueFormat(kind=4, suffix=0x82, guid=LOCAL), "system$;deadletter"),
        (QueueFormat(kind=4, suffix=0x83, guid=LOCAL), "system$;deadxact"),
    ],
)
def test_ours(name: QueueFormat, queue: str) -> None:
    assert queue_of(name, HOME) == queue


BAD = 0xC00E0006
UNKNOWN = 0xC00E0003


@pytest.mark.parametrize(
    ("name", "status"),
    [
        (direct("OS:elsewhere\\private$\\orders"), UNKNOWN),
        (direct("OS:.\\private$\\orders"), UNKNOWN),
        (direct("TCP:10.0.0.2\\private$\\orders"), UNKNOWN),
        (direct("TCP:bridge01\\private$\\orders"), BAD),  # RR-17: literal addresses only
        (direct("http://bridge01/msmq/private$/orders"), BAD),
        (direct("SPX:00000001:000000000001\\private$\\orders"), BAD),
        (direct(None), BAD),
        (direct(""), BAD),
        (direct("OS:bridge01"), BAD),
        (direct(Q + ";JOURNAL", 0x82), BAD),  # they contradict each other
        (direct(Q + ";retry", 0x81), BAD),
        (direct(Q, 0x82), BAD),  # only the machine has dead letters
        (direct(Q, 5), BAD),
        (direct(Q, 5, kind=8), BAD),  # a subqueue without a name
        (direct(Q, 0x01), BAD),  # a system queue without its mark
        (direct(Q, 0x80), BAD),
        (direct(Q, 0x04), BAD),
        (QueueFormat(kind=0), BAD),
        (QueueFormat(kind=1, guid=LOCAL), UNKNOWN),  # there is no directory
        (QueueFormat(kind=2, guid=OTHER, number=9), UNKNOWN),
        (QueueFormat(kind=2, guid=Guid(16), number=9), UNKNOWN),
        (QueueFormat(kind=2, guid=LOCAL, number=4), UNKNOWN),
        (QueueFormat(kind=2, suffix=0x83, guid=LOCAL, number=9), BAD),
        (QueueFormat(kind=4, guid=LOCAL), BAD),  # a machine is no queue
        (QueueFormat(kind=4, suffix=0x82, guid=OTHER), UNKNOWN),
        (QueueFormat(kind=5, guid=LOCAL), BAD),
        (QueueFormat(kind=5, suffix=0x04, guid=LOCAL), BAD),
        (QueueFormat(kind=6, guid=LOCAL), BAD),
        (QueueFormat(kind=7, number=1, port=2), BAD),
    ],
)
def test_not_ours_or_no_name(name: QueueFormat, status: int) -> None:
    with pytest.raises(Refused) as caught:
        queue_of(name, HOME)
    assert caught.value.status == status


@given(st.integers(0, 8), st.integers(0, 255), st.none() | st.text(max_size=60))
def test_any_name(kind: int, suffix: int, text: str | None) -> None:
    try:
        queue = queue_of(QueueFormat(kind=kind, suffix=suffix, guid=LOCAL, text=text), HOME)
    except Refused as refused:
        assert refused.status in (BAD, UNKNOWN)  # noqa: PT017
    else:
        assert queue == queue.lower()
