"""XML as a value; samples are what XmlSerializer is documented to write."""

import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import xml_value
from bridge.core.xml_value import MAX_DEPTH, XmlRefused, read

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


@pytest.mark.parametrize(
    ("xml", "value", "text"),
    [
        ("<string>hello</string>", "hello", "hello"),
        ("<string>  two \n lines </string>", "  two \n lines ", "  two \n lines "),
        ("<string />", "", ""),
        ("<string>a&lt;b&amp;&#x263A;<![CDATA[<c>]]></string>", "a<b&☺<c>", "a<b&☺<c>"),
        ("<int>5</int>", 5, "5"),
        ("<int> -7\n</int>", -7, "-7"),
        ("<unsignedLong>18446744073709551615</unsignedLong>", 2**64 - 1, "18446744073709551615"),
        ("<boolean>true</boolean>", True, "true"),
        ("<boolean>0</boolean>", False, "false"),
        ("<double>1.5E+300</double>", 1.5e300, "1.5E+300"),
        ("<float>-INF</float>", "-Infinity", "-Infinity"),
        ("<double>NaN</double>", "NaN", "NaN"),
        ("<decimal>12.3400</decimal>", "12.3400", "12.3400"),
        ("<char>65</char>", "A", "A"),  # XmlSerializer writes the number
        ("<dateTime>2024-05-06T07:08:09.1234567+02:00</dateTime>",)
        + ("2024-05-06T07:08:09.1234567+02:00",) * 2,
        ("<guid>3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77</guid>",)
        + ("3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77",) * 2,
        ("<base64Binary>AQID</base64Binary>", "AQID", "AQID"),
        (f'<string {XSI} xsi:nil="true" />', None, ""),
    ],
)
def test_primitives_are_the_value(xml: str, value: Any, text: str) -> None:
    found = read('<?xml version="1.0"?>\r\n' + xml)
    assert (found.value, found.text) == (value, text)
    assert type(found.value) is type(value)


ORDER = f"""<?xml version="1.0" encoding="utf-16"?>
<Order {XSI} xmlns="urn:shop" xmlns:x="urn:extra" version="2" x:kind="web" xml:lang="en">
  <Id>00042</Id>
  <!-- no comment --><?nor an instruction?>
  <Line no="1">bolt</Line>
  <Line no="2" />
  <x:Line>nut</x:Line>
  <Note xsi:nil="true" />
  <Payment xsi:type="Card"><Number>4711</Number></Payment>
  <Empty></Empty>
  <Blank>  </Blank>
  <Mixed>one <b>two</b> three</Mixed>
</Order>"""


def test_an_object_is_a_dict() -> None:
    found = read(ORDER)
    assert found.text is None
    assert found.value == {
        "Order": {
            "@version": "2",
            "@kind": "web",
            "@xml:lang": "en",
            "Id": "00042",
            "Line": [{"@no": "1", "#text": "bolt"}, {"@no": "2"}, "nut"],
            "Note": None,
            "Payment": {"@xsi:type": "Card", "Number": "4711"},
            "Empty": "",
            "Blank": "  ",
            "Mixed": {"b": "two", "#text": "one  three"},
        }
    }


@pytest.mark.parametrize(
    ("xml", "value"),
    [
        ('<string xmlns="urn:mine">x</string>', {"string": "x"}),
        ('<int unit="m">5</int>', {"int": {"@unit": "m", "#text": "5"}}),
        ("<ArrayOfInt><int>1</int><int>2</int></ArrayOfInt>", {"ArrayOfInt": {"int": ["1", "2"]}}),
        (f'<Order {XSI} xsi:nil="1"/>', {"Order": None}),
    ],
)
def test_only_a_bare_primitive_is_one(xml: str, value: Any) -> None:
    assert read(xml).value == value


LAUGHS = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><a>&b;</a>'


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (LAUGHS, "xml-doctype"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "xml-doctype"),
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "http://localhost/">]><a>&x;</a>', "xml-doctype"),
        ("<a>&undefined;</a>", "xml-malformed"),
        ("<a>", "xml-malformed"),
        ("<a/><b/>", "xml-malformed"),
        ("<a b='1' b='2'/>", "xml-malformed"),
        ("<x:a/>", "xml-malformed"),
        ("", "xml-malformed"),
        ("<a>\ud800</a>", "xml-malformed"),
        ("<a>&#xD800;</a>", "xml-malformed"),
        ("<a>\0</a>", "xml-malformed"),
        ("<char>55296</char>", "xml-malformed"),  # half a surrogate pair
        ("<char>65536</char>", "xml-malformed"),
        ("<int>five</int>", "xml-malformed"),
        ("<int>1_000</int>", "xml-malformed"),
        ("<int>" + "9" * 5000 + "</int>", "xml-malformed"),
        ("<double>1e9999</double>", "xml-malformed"),
        ("<double>" + "9" * 5000 + "</double>", "xml-malformed"),
        ("<boolean>yes</boolean>", "xml-malformed"),
        ("<decimal>1,5</decimal>", "xml-malformed"),
        ("<a>" * (MAX_DEPTH + 1) + "</a>" * (MAX_DEPTH + 1), "xml-too-deep"),
        ("<a>" * 100_000, "xml-too-deep"),
        ("<a xmlns='" + "u" * 64_000 + "'><b/></a>", "xml-too-large"),
        ("<a" + "".join(f" k{n}=''" for n in range(100_000)) + "/>", "xml-too-large"),
    ],
)
def test_refused(xml: str, reason: str) -> None:
    with pytest.raises(XmlRefused) as refused:
        read(xml)
    assert refused.value.reason == reason


def test_the_limits_themselves_are_lawful(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read("<a>" * MAX_DEPTH + "</a>" * MAX_DEPTH).value
    monkeypatch.setattr(xml_value, "MAX_NODES", 3)
    assert read('<a x="1"><b/></a>').value
    with pytest.raises(XmlRefused, match="xml-too-large"):
        read('<a x="1" y="2"><b/></a>')
    monkeypatch.setattr(xml_value, "MAX_CHARACTERS", 3)
    with pytest.raises(XmlRefused, match="xml-too-large"):
        read("<a/>")


def test_a_name_does_not_repeat_its_namespace() -> None:
    text = "<a xmlns='" + "u" * 4000 + "'>" + "<b/>" * 20_000 + "</a>"  # expanded: 80 MB
    tracemalloc.start()
    try:
        assert read(text).value == {"a": {"b": [""] * 20_000}}
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@given(st.text("<>/ab:?!&;#x=\"' []-\n1", max_size=80))
def test_any_text_is_a_value_or_refused(text: str) -> None:
    with suppress(XmlRefused):
        assert read(text).value is not None or "nil" in text
