"""A packet that somebody copied as text, from whatever tool."""

import base64
import shutil
import subprocess
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters.hex_text import bytes_of
from bridge.model.errors import ConfigError

DATA = bytes(range(256)) + b"abcdef 0123"  # characters that look like hex


def wireshark(data: bytes) -> str:
    return "".join(
        f"{at:04x}   {' '.join(f'{byte:02x}' for byte in data[at : at + 16]):<47}   "
        f"{''.join(chr(byte) if 32 <= byte < 127 else '.' for byte in data[at : at + 16])}\n"
        for at in range(0, len(data), 16)
    )


def hexdump(data: bytes) -> str:
    """`hexdump -C`: a wider gap after eight bytes, and the size in a last line."""
    lines = []
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        halves = [" ".join(f"{byte:02x}" for byte in half) for half in (part[:8], part[8:])]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{at:08x}  {'  '.join(halves):<48}  |{text}|")
    return "\n".join([*lines, f"{len(data):08x}\n"])


def xxd(data: bytes) -> str:
    return "".join(
        f"{at:08x}: {_pairs(data[at : at + 16]):<39}  "
        f"{''.join(chr(byte) if 32 <= byte < 127 else '.' for byte in data[at : at + 16])}\n"
        for at in range(0, len(data), 16)
    )


def tcpdump(data: bytes) -> str:
    return "".join(
        f"\t0x{at:04x}:  {_pairs(data[at : at + 16]):<39}  "
        f"{''.join(chr(byte) if 32 <= byte < 127 else '.' for byte in data[at : at + 16])}\n"
        for at in range(0, len(data), 16)
    )


def _pairs(part: bytes) -> str:
    return " ".join(part[at : at + 2].hex() for at in range(0, len(part), 2))


DUMPS = (wireshark, hexdump, xxd, tcpdump)


@pytest.mark.parametrize("tool", DUMPS)
@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 24, 25, len(DATA)])
def test_dumps(tool: object, size: int) -> None:
    assert callable(tool)
    assert bytes_of(tool(DATA[-size:]), "f") == DATA[-size:]


@given(st.sampled_from(DUMPS), st.binary(min_size=1, max_size=100))
def test_dumps_of_anything(tool: object, data: bytes) -> None:
    assert callable(tool)
    assert bytes_of(tool(data), "f") == data


@pytest.mark.parametrize("command", [["hexdump", "-C"], ["xxd"], ["xxd", "-p"], ["xxd", "-i"]])
def test_what_the_tools_themselves_print(command: list[str]) -> None:
    if shutil.which(command[0]):  # where they are; their formats are played above
        printed = subprocess.run(command, input=DATA, capture_output=True, check=True).stdout
        assert bytes_of(printed.decode(), "f") == DATA


def test_a_dump_of_two_packets_begins_at_zero_again() -> None:
    assert bytes_of(wireshark(b"a" * 20) + "\n" + wireshark(b"b" * 3), "f") == b"a" * 20 + b"bbb"


@pytest.mark.parametrize(
    "text",
    [
        "10000b004c49",
        "10 00 0b 00 4c 49",
        "10:00:0B:00:4C:49",
        "10-00-0b-00-4c-49",
        "0x10, 0x00, 0x0b, 0x00, 0x4c, 0x49",
        "{ 0x10, 0x00, 0x0b,\n  0x00, 0x4c, 0x49 };",
        "0x10000b004c49",
        '"\\x10\\x00\\x0b\\x00"\n"\\x4c\\x49"',
        "# a comment\n10000b\n\n004c49\n",
        base64.b64encode(bytes.fromhex("10000b004c49")).decode(),
        "EAAL\nAExJ\n",
    ],
)
def test_hex_and_base64_in_any_dress(text: str) -> None:
    assert bytes_of(text, "f") == bytes.fromhex("10000b004c49")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "f: is empty; give it a packet in hex"),
        ("# nothing\n", "f: is empty; give it a packet in hex"),
        ("10 00 0", "f: has an odd number of hex digits (5); copy it again, whole"),
        ("hello world!", "f: is no sample that can be read; use a .yaml sample, a packet in hex"),
        ("\u00e4\u00f6", "f: is no sample that can be read"),
    ],
)
def test_what_is_none_of_them(text: str, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bytes_of(text, "f")
    assert str(caught.value).startswith(line)


@given(st.text())
def test_any_text_gives_bytes_or_one_error(text: str) -> None:
    with suppress(ConfigError):
        bytes_of(text, "f")
