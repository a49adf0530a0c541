"""Where topics begin and end."""

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.model.errors import ConfigError
from msmq_jobs.reconcile.cluster import Extent, compacted, look
from tests.support.kafka import create_topic, unique


def test_reading_goes_on_where_it_stopped() -> None:
    extent = Extent(first={"t": {0: 5, 1: 0}}, ends={"t": {0: 9, 1: 4}}, ids={"t": "x"})
    assert extent.ranges({}) == {"t": {0: 5, 1: 0}}
    assert extent.ranges({"t": {0: 7, 1: 4}}) == {"t": {0: 7, 1: 4}}
    assert extent.ranges({"t": {0: 2}}) == {"t": {0: 5, 1: 0}}  # what has aged out since is gone
    assert extent.of([]) == Extent(first={}, ends={})
    with pytest.raises(ConfigError, match="made anew"):
        extent.ranges({"t": {0: 2, 1: 8}})
    assert extent.ranges({"t": {0: 7}}, {"t": "x"}) == {"t": {0: 7, 1: 0}}
    assert extent.ranges({"t": {0: 7}}, {}) == {"t": {0: 7, 1: 0}}  # nobody has asked as yet
    with pytest.raises(ConfigError, match="made anew"):  # and is as long again
        extent.ranges({"t": {0: 7}}, {"t": "y"})


@pytest.mark.kafka
def test_what_the_cluster_says(kafka: EmbeddedKafka) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    one = create_topic(kafka.bootstrap_servers, unique("one"), 2)
    two = create_topic(kafka.bootstrap_servers, unique("two"), 1, cleanup_policy="compact")
    found = look(settings, {one: 2, two: 1})
    assert found.first == found.ends == {one: {0: 0, 1: 0}, two: {0: 0}}
    assert found.ids[one] != found.ids[two]
    assert look(settings, {one: 2}).ids == {one: found.ids[one]}
    assert compacted(settings, [one, two]) == {two}
    assert compacted(settings, []) == frozenset()
    assert look(settings, {}) == Extent(first={}, ends={})
