"""Envelopes as text, so that a test can break one of them in one place."""

from __future__ import annotations

SE = "http://schemas.xmlsoap.org/soap/envelope/"
RP = "http://schemas.xmlsoap.org/rp/"
SRMP = "http://schemas.xmlsoap.org/srmp/"
MUST = 'se:mustUnderstand="1"'
QM = "32221eda-9376-46df-b6ed-783091123831"
TO = "http://bridge/msmq/private$/q"

PATH = f'<path xmlns="{RP}" {MUST}><action>MSMQ:a</action><to>{TO}</to><id>uuid:7@{QM}</id></path>'
PROPERTIES = (
    f"<properties {MUST}><expiresAt>20380119T031407</expiresAt>"
    "<sentAt>20070608T023719</sentAt></properties>"
)
MSMQ = (
    '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority><BodyType>8</BodyType>'
    f"<SourceQmGuid>{QM}</SourceQmGuid><TTrq>20070612T023719</TTrq></Msmq>"
)
SERVICES = (
    f"<services {MUST}><durable/><deliveryReceiptRequest><sendTo>http://a/msmq/d</sendTo>"
    "</deliveryReceiptRequest><commitmentReceiptRequest><sendTo>http://a/msmq/c</sendTo>"
    "<positiveOnly/><negativeOnly/></commitmentReceiptRequest></services>"
)
STREAM = (
    f"<stream {MUST}><streamId>uid:{QM}\\77</streamId><current>1</current>"
    "<start><sendReceiptsTo>http://a/msmq/o</sendReceiptsTo></start></stream>"
)


def soap(header: str, body: str = "<se:Body></se:Body>") -> bytes:
    return (
        f'<se:Envelope xmlns:se="{SE}" xmlns="{SRMP}"><se:Header>{header}</se:Header>{body}'
        "</se:Envelope>"
    ).encode()


def good(*more: str) -> bytes:
    return soap(PATH + PROPERTIES + "".join(more))
