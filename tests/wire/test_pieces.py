from bridge.wire.pieces import Pieces


def test_a_packet_in_four_pieces() -> None:
    packet = Pieces(head=b"head", part=b"body1", pad=b"\0\0\0", tail=b"tail")
    assert packet.all == (b"head", b"body1", b"\0\0\0", b"tail")
    assert len(packet) == 16
