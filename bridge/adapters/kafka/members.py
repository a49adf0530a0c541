"""Who is in the lease's group, as its brokers describe it to whoever may read the group.

A member's client.id ends with its name and the port of its lifeline; its address is the one that
the broker sees. Nobody has to be told where the other appliance is.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from bridge.adapters.kafka.client import Settings, admin_client, unavailable
from bridge.adapters.kafka.topics import OwnTopics
from bridge.model.errors import SinkUnavailable

ANSWER_S: Final = 1.5
_AWAY: Final = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
_SIGNED: Final = re.compile(r"\.(?P<name>[0-9a-f]{32})\.(?P<port>[0-9]{1,5})$")


class NotTold(SinkUnavailable):
    """Kafka is not away: we may not read the group, say."""


class Member(msgspec.Struct, frozen=True):
    """Name, host and port are those of the process that had this place first."""

    instance: str  # group.instance.id: who joins with it is taken for this member
    id: str  # another one for each that joins
    name: str
    host: str
    port: int  # 0: it has no lifeline
    leads: bool


def signed(client_id: str, name: str, port: int) -> str:
    """The client.id of a member."""
    return f"{client_id}.{name}.{port}"


class Members:
    """Blocking calls, for a worker."""

    def __init__(self, settings: Settings, own: OwnTopics) -> None:
        self._settings, self._own = settings, own
        self._admin: AdminClient | None = None

    def look(self) -> list[Member]:
        """Sorted by instance, without those that did not sign. SinkUnavailable, or NotTold."""
        group = self._own.lease
        try:
            if self._admin is None:
                self._admin = admin_client(self._settings)
            asked = self._admin.describe_consumer_groups([group], request_timeout=ANSWER_S)
            members = asked[group].result().members
            found = [found for raw in members if (found := _member(raw, group))]
        except KafkaException as error:
            self.forget()
            failed = unavailable("looking at the lease's group", error)
            raise failed if error.args[0].code() in _AWAY else NotTold(str(failed)) from error
        return sorted(found, key=lambda member: member.instance)

    def forget(self) -> None:
        """A client that has lived through its broker's restart thinks for long, a new one not."""
        self._admin = None


def _member(raw: Any, lease: str) -> Member | None:
    sign = _SIGNED.search(raw.client_id or "")
    if sign is None or not raw.group_instance_id:
        return None
    port = int(sign["port"])
    places = raw.assignment.topic_partitions if raw.assignment else ()
    return Member(
        instance=raw.group_instance_id,
        id=raw.member_id,
        name=sign["name"],
        host=raw.host.rpartition("/")[2],  # Java writes name/address
        port=port if port < 1 << 16 else 0,
        leads=any(place.topic == lease for place in places),
    )
