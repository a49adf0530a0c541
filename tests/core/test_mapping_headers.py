"""`headers:` as values; each contradiction in a file: adapters/test_config_files_mappings."""

import pytest

from bridge.core import mapping
from bridge.core.mapping_headers import CLOUDEVENTS, HEADERS, HeaderRules, mend_header
from bridge.model.errors import ConfigError


def test_the_table_is_the_one_that_records_are_made_by() -> None:
    assert set(mapping._BY_HEADER) <= HEADERS


def test_what_a_record_has() -> None:
    rules = HeaderRules(exclude=("msmq.wire",), rename={"msmq.label": "title"}, prefix="mq-")
    assert not rules.includes("msmq.wire")
    assert rules.includes("msmq.id")
    assert rules.name_of("msmq.label") == "title"
    assert rules.name_of("msmq.tx.seq") == "mq-tx.seq"
    assert {"title", "mq-id"} <= rules.made()
    assert not {"msmq.label", "mq-label", "mq-wire"} & rules.made()


def test_few_or_none() -> None:
    few = HeaderRules(include=("msmq.id",), add={"env": "prod"}, cloudevents=True)
    assert few.made() == {"msmq.id", "env"} | CLOUDEVENTS
    assert HeaderRules(include="none").made() == set()


@pytest.mark.parametrize(
    ("rules", "wants"),
    [
        (HeaderRules(), False),  # design D7: off unless asked for
        (HeaderRules(include=("msmq.soap.compound",)), True),
        (HeaderRules(include=("msmq.soap",)), False),
        (HeaderRules(include="none"), False),
        (HeaderRules(rename={"msmq.soap.compound": "request"}), True),
        (HeaderRules(rename={"msmq.soap": "request"}), False),
        (HeaderRules(exclude=("msmq.soap.compound",)), False),
        (HeaderRules(prefix="mq."), False),
    ],
)
def test_who_wants_the_whole_request(rules: HeaderRules, wants: bool) -> None:
    assert rules.wants_compound is wants


def test_names_that_may_be_swapped_or_taken_over() -> None:
    swap = {"msmq.label": "msmq.id", "msmq.id": "msmq.label"}
    assert HeaderRules(rename=swap).name_of("msmq.id") == "msmq.label"
    assert HeaderRules(cloudevents=True, add={"ce_type": "com.example.order"})
    assert HeaderRules(cloudevents=True, rename={"msmq.label": "ce_subject"})


def test_a_wrong_name_is_mended() -> None:
    assert mend_header("msmq.label") == ""
    assert mend_header("title", {"title"}) == ""
    assert "'msmq.label'" in mend_header("msmq.lable")
    assert "'msmq.label'" in mend_header("label")
    assert "README" in mend_header("zzzzzzzzzzzz")


def test_where_a_fault_is() -> None:
    with pytest.raises(ConfigError) as caught:
        HeaderRules(include=("msmq.id", "msmq.nothing-at-all"))
    assert caught.value.where == "include/1"
