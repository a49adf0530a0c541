# mypy: disable-error-code="misc, no-untyped-call, no-any-unimported"
"""The IDL of MS-MQRR, MS-MQQP and MS-MQMP as NDR classes of stock impacket.

Written from the specifications, not from the bridge: what both agree on is probably right. The
names are those of the IDL. Known traps of impacket: digest remote-read.md section 7.
"""

from typing import Any, ClassVar

from impacket.dcerpc.v5.dtypes import GUID, LONG, LPWSTR, NULL, UCHAR, ULONG, ULONGLONG, USHORT
from impacket.dcerpc.v5.ndr import (
    NDRCALL,
    NDRENUM,
    NDRPOINTER,
    NDRSTRUCT,
    NDRUNION,
    NDRUniConformantArray,
    NDRUniConformantVaryingArray,
)
from impacket.dcerpc.v5.rpcrt import DCERPCException

REMOTE_READ = ("1a9134dd-7b39-45ba-ad88-44d01ca47f28", "1.0")
QM2QM = ("1088a980-eae5-11d0-8d9b-00a02453c337", "1.0")
QMCOMM = ("fdb3a030-065f-11d1-bb9b-00a024ea5525", "1.0")


class DCERPCSessionError(DCERPCException):
    """impacket looks for this name beside a call."""


class Bytes(NDRUniConformantArray):
    """[size_is(n)] byte[]; that of impacket is a list of characters."""

    def getAlignment(self) -> int:  # noqa: N802
        return 1

    def getData(self, soFar: int = 0) -> bytes:  # noqa: N802, N803
        data = bytes(self.fields["Data"])
        self.setArraySize(len(data))
        self.fields["MaximumCount"] = len(data)
        return data

    def fromString(self, data: bytes, offset: int = 0) -> int:  # noqa: N802
        size = int(self.getArraySize())
        assert size <= len(data) - offset
        self.fields["Data"] = bytes(data[offset : offset + size])
        return size


class Handle(NDRSTRUCT):
    structure = (("attributes", ULONG), ("uuid", "16s=b''"))

    def getAlignment(self) -> int:  # noqa: N802
        return 4


class XACTUOW(NDRSTRUCT):
    structure = (("rgb", "16s=b''"),)

    def getAlignment(self) -> int:  # noqa: N802
        return 1


class Nothing(NDRSTRUCT):
    structure = ()


class OBJECTID(NDRSTRUCT):
    structure = (("Lineage", GUID), ("Uniquifier", ULONG))


class DL_ID(NDRSTRUCT):  # noqa: N801
    structure = (("m_DlGuid", GUID), ("m_pwzDomain", LPWSTR))


class MULTICAST_ID(NDRSTRUCT):  # noqa: N801
    structure = (("m_address", ULONG), ("m_port", ULONG))


class QUEUE_FORMAT_UNION(NDRUNION):  # noqa: N801
    commonHdr = (("tag", UCHAR),)  # noqa: N815
    union: ClassVar[dict[int, tuple[str, Any]]] = {
        0: ("none", Nothing),
        1: ("m_gid", GUID),
        2: ("m_oid", OBJECTID),
        3: ("m_pDirectID", LPWSTR),
        4: ("m_gid", GUID),
        5: ("m_gid", GUID),
        6: ("m_DL", DL_ID),
        7: ("m_MulticastID", MULTICAST_ID),
        8: ("m_pDirectSubqueueID", LPWSTR),
    }


class QUEUE_FORMAT(NDRSTRUCT):  # noqa: N801
    structure = (
        ("m_qft", UCHAR),
        ("m_SuffixAndFlags", UCHAR),
        ("m_reserved", USHORT),
        ("u", QUEUE_FORMAT_UNION),
    )

    def getAlignment(self) -> int:  # noqa: N802
        return 4


class PQUEUE_FORMAT(NDRPOINTER):  # noqa: N801
    referent = (("Data", QUEUE_FORMAT),)


class SectionType(NDRENUM):
    pass


class PBytes(NDRPOINTER):
    referent = (("Data", Bytes),)


class SectionBuffer(NDRSTRUCT):
    structure = (
        ("SectionBufferType", SectionType),
        ("SectionSizeAlloc", ULONG),
        ("SectionSize", ULONG),
        ("pSectionBuffer", PBytes),
    )


class SectionBuffers(NDRUniConformantArray):
    item = SectionBuffer


class PSectionBuffers(NDRPOINTER):
    referent = (("Data", SectionBuffers),)


# -- RemoteRead -----------------------------------------------------------------------------


class R_GetServerPort(NDRCALL):  # noqa: N801
    opnum = 0
    structure = ()


class R_GetServerPortResponse(NDRCALL):  # noqa: N801
    structure = (("port", ULONG),)


_OPEN = (
    ("pQueueFormat", QUEUE_FORMAT),
    ("dwAccess", ULONG),
    ("dwShareMode", ULONG),
    ("pClientId", GUID),
    ("fNonRoutingServer", LONG),
    ("Major", UCHAR),
    ("Minor", UCHAR),
    ("BuildNumber", USHORT),
    ("fWorkgroup", LONG),
)


class R_OpenQueue(NDRCALL):  # noqa: N801
    opnum = 2
    structure = _OPEN


class R_OpenQueueResponse(NDRCALL):  # noqa: N801
    structure = (("pphContext", Handle),)


class R_CloseQueue(NDRCALL):  # noqa: N801
    opnum = 3
    structure = (("pphContext", Handle),)


class R_CloseQueueResponse(NDRCALL):  # noqa: N801
    structure = (("pphContext", Handle), ("ErrorCode", ULONG))


class R_CreateCursor(NDRCALL):  # noqa: N801
    opnum = 4
    structure = (("phContext", Handle),)


class R_CreateCursorResponse(NDRCALL):  # noqa: N801
    structure = (("phCursor", ULONG), ("ErrorCode", ULONG))


class R_CloseCursor(NDRCALL):  # noqa: N801
    opnum = 5
    structure = (("phContext", Handle), ("hCursor", ULONG))


class Result(NDRCALL):
    structure = (("ErrorCode", ULONG),)


class R_CloseCursorResponse(Result):  # noqa: N801
    pass


class R_PurgeQueue(NDRCALL):  # noqa: N801
    opnum = 6
    structure = (("phContext", Handle),)


class R_PurgeQueueResponse(Result):  # noqa: N801
    pass


_START = (
    ("phContext", Handle),
    ("LookupId", ULONGLONG),
    ("hCursor", ULONG),
    ("ulAction", ULONG),
    ("ulTimeout", ULONG),
    ("dwRequestId", ULONG),
    ("dwMaxBodySize", ULONG),
    ("dwMaxCompoundMessageSize", ULONG),
)


class R_StartReceive(NDRCALL):  # noqa: N801
    opnum = 7
    structure = _START


class R_StartReceiveResponse(NDRCALL):  # noqa: N801
    structure = (
        ("pdwArriveTime", ULONG),
        ("pSequenceId", ULONGLONG),
        ("pdwNumberOfSections", ULONG),
        ("ppPacketSections", PSectionBuffers),
        ("ErrorCode", ULONG),
    )


class R_CancelReceive(NDRCALL):  # noqa: N801
    opnum = 8
    structure = (("phContext", Handle), ("dwRequestId", ULONG))


class R_CancelReceiveResponse(Result):  # noqa: N801
    pass


class R_EndReceive(NDRCALL):  # noqa: N801
    opnum = 9
    structure = (("phContext", Handle), ("dwAck", ULONG), ("dwRequestId", ULONG))


class R_EndReceiveResponse(Result):  # noqa: N801
    pass


class R_MoveMessage(NDRCALL):  # noqa: N801
    opnum = 10
    structure = (
        ("phContextFrom", Handle),
        ("ullContextTo", ULONGLONG),
        ("LookupId", ULONGLONG),
        ("pTransactionId", XACTUOW),
    )


class R_MoveMessageResponse(Result):  # noqa: N801
    pass


class R_OpenQueueForMove(NDRCALL):  # noqa: N801
    opnum = 11
    structure = _OPEN


class R_OpenQueueForMoveResponse(NDRCALL):  # noqa: N801
    structure = (("pMoveContext", ULONGLONG), ("pphContext", Handle))


class R_QMEnlistRemoteTransaction(NDRCALL):  # noqa: N801
    opnum = 12
    structure = (
        ("pTransactionId", XACTUOW),
        ("cbPropagationToken", ULONG),
        ("pbPropagationToken", Bytes),
        ("pQueueFormat", QUEUE_FORMAT),
    )


class R_QMEnlistRemoteTransactionResponse(Result):  # noqa: N801
    pass


class R_StartTransactionalReceive(NDRCALL):  # noqa: N801
    opnum = 13
    structure = (*_START, ("pTransactionId", XACTUOW))


class R_StartTransactionalReceiveResponse(R_StartReceiveResponse):  # noqa: N801
    pass


class R_SetUserAcknowledgementClass(NDRCALL):  # noqa: N801
    opnum = 14
    structure = (("phContext", Handle), ("LookupId", ULONGLONG), ("usClass", USHORT))


class R_SetUserAcknowledgementClassResponse(Result):  # noqa: N801
    pass


class R_EndTransactionalReceive(NDRCALL):  # noqa: N801
    opnum = 15
    structure = (("phContext", Handle), ("dwAck", ULONG), ("dwRequestId", ULONG))


class R_EndTransactionalReceiveResponse(Result):  # noqa: N801
    pass


# -- qm2qm ----------------------------------------------------------------------------------


class VaryingBytes(NDRUniConformantVaryingArray):
    """[size_is(n), length_is(n)] byte[]"""

    def getAlignment(self) -> int:  # noqa: N802
        return 4

    def getData(self, soFar: int = 0) -> bytes:  # noqa: N802, N803
        data = bytes(self.fields["Data"])
        self.setArraySize(len(data))
        self.fields["MaximumCount"] = len(data)
        return bytes(4) + len(data).to_bytes(4, "little") + data

    def fromString(self, data: bytes, offset: int = 0) -> int:  # noqa: N802
        first, size = (int.from_bytes(data[offset + at :][:4], "little") for at in (0, 4))
        assert (first, size) == (0, int(self.getArraySize()))
        start = offset + 8
        assert size <= len(data) - start
        self.fields["Data"] = bytes(data[start : start + size])
        return 8 + size


class PVaryingBytes(NDRPOINTER):
    referent = (("Data", VaryingBytes),)


class AckNack(NDRENUM):
    pass


class REMOTEREADDESC(NDRSTRUCT):
    structure = (
        ("hRemoteQueue", ULONG),
        ("hCursor", ULONG),
        ("ulAction", ULONG),
        ("ulTimeout", ULONG),
        ("dwSize", ULONG),
        ("dwQueue", ULONG),
        ("dwRequestID", ULONG),
        ("Reserved", ULONG),
        ("dwArriveTime", ULONG),
        ("eAckNack", AckNack),
        ("lpBuffer", PVaryingBytes),
    )


class PREMOTEREADDESC(NDRPOINTER):
    referent = (("Data", REMOTEREADDESC),)


class REMOTEREADDESC2(NDRSTRUCT):
    structure = (("pRemoteReadDesc", PREMOTEREADDESC), ("SequentialId", ULONGLONG))

    def getAlignment(self) -> int:  # noqa: N802
        return 8


class RemoteQMStartReceive(NDRCALL):
    opnum = 0
    structure = (("lpRemoteReadDesc", REMOTEREADDESC),)


class RemoteQMStartReceiveResponse(NDRCALL):
    structure = (
        ("pphContext", Handle),
        ("lpRemoteReadDesc", REMOTEREADDESC),
        ("ErrorCode", ULONG),
    )


class RemoteQMEndReceive(NDRCALL):
    opnum = 1
    structure = (("pphContext", Handle), ("dwAck", ULONG))


class RemoteQMEndReceiveResponse(NDRCALL):
    structure = (("pphContext", Handle), ("ErrorCode", ULONG))


class RemoteQMOpenQueue(NDRCALL):
    opnum = 2
    structure = (
        ("pLicGuid", GUID),
        ("dwMQS", ULONG),
        ("hQueue", ULONG),
        ("pQueue", ULONG),
        ("dwpContext", ULONG),
    )


class RemoteQMOpenQueueResponse(NDRCALL):
    structure = (("phContext", Handle), ("ErrorCode", ULONG))


class RemoteQMCloseQueue(NDRCALL):
    opnum = 3
    structure = (("pphContext", Handle),)


class RemoteQMCloseQueueResponse(NDRCALL):
    structure = (("pphContext", Handle), ("ErrorCode", ULONG))


class RemoteQMCloseCursor(NDRCALL):
    opnum = 4
    structure = (("hQueue", ULONG), ("hCursor", ULONG))


class RemoteQMCloseCursorResponse(Result):
    pass


class RemoteQMCancelReceive(NDRCALL):
    opnum = 5
    structure = (("hQueue", ULONG), ("pQueue", ULONG), ("dwRequestID", ULONG))


class RemoteQMCancelReceiveResponse(Result):
    pass


class RemoteQMPurgeQueue(NDRCALL):
    opnum = 6
    structure = (("hQueue", ULONG),)


class RemoteQMPurgeQueueResponse(Result):
    pass


class RemoteQMGetQMQMServerPort(NDRCALL):
    opnum = 7
    structure = (("dwPortType", ULONG),)


class RemoteQMGetQMQMServerPortResponse(NDRCALL):
    structure = (("port", ULONG),)


class RemoteQmGetVersion(NDRCALL):
    opnum = 8
    structure = ()


class RemoteQmGetVersionResponse(NDRCALL):
    structure = (("pMajor", UCHAR), ("pMinor", UCHAR), ("pBuildNumber", USHORT))


class RemoteQMStartReceive2(NDRCALL):
    opnum = 9
    structure = (("lpRemoteReadDesc2", REMOTEREADDESC2),)


class RemoteQMStartReceive2Response(NDRCALL):
    structure = (
        ("pphContext", Handle),
        ("lpRemoteReadDesc2", REMOTEREADDESC2),
        ("ErrorCode", ULONG),
    )


class RemoteQMStartReceiveByLookupId(NDRCALL):
    opnum = 10
    structure = (("LookupId", ULONGLONG), ("lpRemoteReadDesc2", REMOTEREADDESC2))


class RemoteQMStartReceiveByLookupIdResponse(RemoteQMStartReceive2Response):
    pass


# -- qmcomm ---------------------------------------------------------------------------------


class R_QMOpenRemoteQueue(NDRCALL):  # noqa: N801
    opnum = 2
    structure = (
        ("pQueueFormat", PQUEUE_FORMAT),
        ("dwCallingProcessID", ULONG),
        ("dwDesiredAccess", ULONG),
        ("dwShareMode", ULONG),
        ("pLicGuid", GUID),
        ("dwMQS", ULONG),
    )


class R_QMOpenRemoteQueueResponse(NDRCALL):  # noqa: N801
    structure = (
        ("pphContext", Handle),
        ("pdwContext", ULONG),
        ("dwpQueue", ULONG),
        ("phQueue", ULONG),
        ("ErrorCode", ULONG),
    )


class R_QMCloseRemoteQueueContext(NDRCALL):  # noqa: N801
    opnum = 3
    structure = (("pphContext", Handle),)


class R_QMCloseRemoteQueueContextResponse(NDRCALL):  # noqa: N801
    structure = (("pphContext", Handle),)


class R_QMCreateRemoteCursor(NDRCALL):  # noqa: N801
    opnum = 4
    structure = (("ptb1", "228s=b''"), ("hQueue", ULONG))


class R_QMCreateRemoteCursorResponse(NDRCALL):  # noqa: N801
    structure = (("phCursor", ULONG), ("ErrorCode", ULONG))


class R_QMGetRTQMServerPort(NDRCALL):  # noqa: N801
    opnum = 31
    structure = (("fIP", ULONG),)


class R_QMGetRTQMServerPortResponse(NDRCALL):  # noqa: N801
    structure = (("port", ULONG),)


def queue_format(kind: int, suffix: int = 0, **arm: Any) -> QUEUE_FORMAT:
    """`arm` is {member: value}; a text gets its NUL."""
    made = QUEUE_FORMAT()
    made["m_qft"], made["m_SuffixAndFlags"], made["m_reserved"] = kind, suffix, 0
    made["u"]["tag"] = kind
    for name, value in arm.items():
        if isinstance(value, dict):
            for member, content in value.items():
                made["u"][name][member] = content
        else:
            made["u"][name] = value + "\0" if isinstance(value, str) else value
    return made


def handle(raw: bytes) -> Handle:
    made = Handle()
    made["attributes"], made["uuid"] = int.from_bytes(raw[:4], "little"), raw[4:]
    return made


def raw_handle(value: Any) -> bytes:
    return int(value["attributes"]).to_bytes(4, "little") + bytes(value["uuid"])


__all__ = ["NULL"]
