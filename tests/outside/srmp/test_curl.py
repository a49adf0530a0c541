"""What a stranger with curl and a file can send."""

import shutil
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from tests.outside.appliance import Appliance
from tests.outside.srmp.bench import Topics
from tests.outside.srmp.wire import Mail, body_part, content_type, multipart, unix, url
from tests.vectors import srmp as vectors

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


def curl(appliance: Appliance, file: Path, kind: str, *options: str) -> list[str]:
    """The status of each answer."""
    host, port = appliance.srmp_address
    place = f"http://{host}:{port}/msmq/private$/simpleq"
    done = subprocess.run(
        [
            *("curl", "--silent", "--show-error", "--max-time", "30", "--request", "POST"),
            *("--data-binary", f"@{file}", "--header", f"Content-Type: {kind}"),
            *("--header", 'SOAPAction: "MSMQMessage"', "--write-out", "%{http_code}\\n"),
            *(*options, place),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.split()


def mail_of(body: bytes) -> tuple[Mail, bytes]:
    """V5, but for a queue of ours and an id that is new."""
    mail = Mail(
        to=url("simpleq"),
        label="mqsender label",
        sent=unix("20070608T023719"),
        body_type=8,
        body=body,
    )
    content = multipart(mail.envelope.encode(), [body_part(body, mail.source)])
    return mail, content


def test_the_first_example(appliance: Appliance, topics: Topics, tmp_path: Path) -> None:  # V1
    file = tmp_path / "v1"
    mark = b"curl " + uuid4().hex[:8].encode()
    data = vectors.REQUESTS["V1"].body.replace(b"First Message", mark)
    assert len(data) == 906
    file.write_bytes(data)
    kind = vectors.REQUESTS["V1"].content_type.replace("\r\n", "")
    assert curl(appliance, file, kind) == ["200"]
    [record] = topics.with_body(mark)
    assert record.header["msmq.label"] == b"mqsender label"


def test_what_windows_sent(appliance: Appliance, topics: Topics, tmp_path: Path) -> None:  # V5
    mail, content = mail_of(vectors.V5_BODY)
    file = tmp_path / "v5"
    file.write_bytes(content)
    assert curl(appliance, file, content_type()) == ["200"]
    assert curl(appliance, file, content_type()) == ["200"]  # SR-21
    [record] = topics.with_id(mail.id)
    assert record.value.decode("utf-16-le") == "ardenwhite"
    assert record.header["msmq.body-type"] == b"8"


def test_chunks_and_expectations(appliance: Appliance, topics: Topics, tmp_path: Path) -> None:
    """1.2: chunked, `Expect: 100-continue`."""
    for option in ("Transfer-Encoding: chunked", "Expect: 100-continue"):
        mail, content = mail_of(b"c" * 700_000)
        file = tmp_path / "large"
        file.write_bytes(content)
        assert curl(appliance, file, content_type(), "--header", option) == ["200"]
        [record] = topics.with_id(mail.id)
        assert record.value == mail.body


def test_a_plain_envelope(appliance: Appliance, topics: Topics, tmp_path: Path) -> None:  # 1.3 D
    mail, _ = mail_of(b"")
    file = tmp_path / "envelope.xml"
    file.write_bytes(mail.envelope.encode())
    assert curl(appliance, file, "text/xml") == ["200"]
    assert [one.value for one in topics.with_id(mail.id)] == [b""]


def test_garbage(appliance: Appliance, tmp_path: Path) -> None:  # SR-5
    file = tmp_path / "garbage"
    file.write_bytes(b"not an envelope")
    assert curl(appliance, file, "text/xml") == ["400"]
    assert curl(appliance, file, content_type()) == ["400"]
