"""Capture files of every kind give the same frames; broken ones say where."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters.capture_frames import PCAPNG, frames_in, is_capture
from bridge.model.errors import ConfigError
from tests.support.captures import ethernet, pcap, pcapng, segment

PACKETS = [segment(b"one"), segment(b"four")]
AT = 1_769_860_800_123


@pytest.mark.parametrize(
    "file",
    [
        pcap(PACKETS, at_ms=AT),
        pcap(PACKETS, at_ms=AT, order=">"),
        pcap(PACKETS, at_ms=AT, nanoseconds=True),
        pcap(PACKETS, at_ms=AT, nanoseconds=True, order=">"),
        pcapng(PACKETS, at_ms=AT),
        pcapng(PACKETS, at_ms=AT, order=">"),
        pcapng(PACKETS, at_ms=AT, kind=2),
        pcapng(PACKETS, at_ms=AT, resolution=9),
        pcapng(PACKETS, at_ms=AT, resolution=6, order=">"),
        pcapng(PACKETS, at_ms=AT) + pcapng([], order=">"),  # another section
    ],
)
def test_frames_and_their_times(file: bytes) -> None:
    assert is_capture(file)
    frames = list(frames_in(file, "f"))
    assert [frame.data for frame in frames] == [ethernet(packet) for packet in PACKETS]
    assert [frame.at_ms for frame in frames] == [AT, AT + 1]
    assert {(frame.link, frame.is_cut) for frame in frames} == {(1, False)}


def test_times_in_powers_of_two() -> None:
    frames = list(frames_in(pcapng(PACKETS, at_ms=AT - 123, resolution=0x80 | 20), "f"))
    assert frames[0].at_ms == AT - 123


def test_times_that_no_clock_has() -> None:
    last = 0xFFFFFFFF * 1000
    for file in (pcapng(PACKETS, at_ms=2**53, resolution=6), pcap(PACKETS, at_ms=last + 998)):
        assert [frame.at_ms for frame in frames_in(file, "f")] == [last, last]


def test_simple_blocks_have_no_time() -> None:
    frames = list(frames_in(pcapng(PACKETS, kind=3), "f"))
    assert [(frame.at_ms, len(frame.data)) for frame in frames] == [(0, 57), (0, 58)]


def test_frames_that_the_capture_cut_short() -> None:
    assert [f.is_cut for f in frames_in(pcap([segment(b"x" * 100)], snap=64), "f")] == [True]


@pytest.mark.parametrize("file", [pcap(PACKETS), pcapng(PACKETS)])
def test_a_file_that_was_stopped_in_the_middle(file: bytes) -> None:
    """Every shorter one gives the frames before that, and never a traceback."""
    for size in range(4, len(file)):
        with suppress(ConfigError):
            assert len(list(frames_in(file[:size], "f"))) <= 2


@pytest.mark.parametrize(
    "file",
    [
        pcap([])[:20],
        pcap([]) + b"\xff" * 16,
        pcapng(PACKETS)[:28] + b"\1\0\0\0\3\0\0\0" + bytes(20),
        pcapng([]) + b"\6\0\0\0\x20\0\0\0\7" + bytes(23),  # no such interface
    ],
)
def test_broken_files(file: bytes) -> None:
    with pytest.raises(ConfigError, match=r"^f: is broken at byte \d+; export it again$"):
        list(frames_in(file, "f"))


@given(st.sampled_from([pcap([])[:4], PCAPNG]), st.binary(max_size=200))
def test_any_bytes_behind_a_magic(magic: bytes, rest: bytes) -> None:
    with suppress(ConfigError):
        list(frames_in(magic + rest, "f"))
