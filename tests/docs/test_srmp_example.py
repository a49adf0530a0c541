"""The files in examples/srmp are the requests of the specification, byte for byte."""

import pytest

from bridge.adapters.config_files import load_config, load_mappings
from bridge.wire.srmp.convert import message_from_request
from bridge.wire.srmp.request import read_request
from tests.docs.runner import ROOT
from tests.vectors.srmp import REQUESTS, V5_BODY, V5_ENVELOPE, V5_QM, multipart

FOLDER = ROOT / "examples" / "srmp"
FILES = {
    "v1": "V1",
    "v2": "V2",
    "v3": "V3",
    "v4-1": "V4.1",
    "v4-2": "V4.2",
    "v4-3": "V4.3",
}


@pytest.mark.parametrize("name", FILES)
def test_as_the_specification_has_it(name: str) -> None:  # MC-MQSRM 4.1 to 4.4
    data = (FOLDER / f"{name}.multipart").read_bytes()
    expected = REQUESTS[FILES[name]]
    assert len(data) == expected.length
    assert data == expected.body


def test_the_last_names_a_queue() -> None:  # MC-MQSRM 4.5 has a multicast address there
    queue = b"http://machine2/msmq/private$/simpleq"
    envelope = V5_ENVELOPE.replace(b"MSMQ:MULTICAST=234.1.1.1:8001", queue)
    expected = multipart(292, envelope, V5_BODY, V5_QM)
    assert (FOLDER / "v5.multipart").read_bytes() == expected
    kind = REQUESTS["V5"].content_type
    message = message_from_request(read_request(kind, expected))
    assert message.destination == f"DIRECT={queue.decode()}"
    assert message.body.decode("utf-16-le") == "ardenwhite"


def test_git_leaves_their_line_ends_alone() -> None:
    assert "*.multipart -text" in (FOLDER / ".gitattributes").read_text().splitlines()


def test_the_configuration_is_for_them() -> None:
    config = load_config(FOLDER / "bridge.yaml")
    assert config.queue_manager.names == ("machine2",)
    assert (config.listen.srmp, config.listen.binary) == (8080, None)
    queues = load_mappings(config.mappings).queues
    assert {str(m.queue): bool(m.transactional) for m in queues} == {
        "private$\\simpleq": False,
        "private$\\tsimpleq": True,
    }
