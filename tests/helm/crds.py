"""What the operators' own definitions ask of the few objects that the chart makes for them.

From the public API pages of the Prometheus operator (monitoring.coreos.com/v1) and of Strimzi
(kafka.strimzi.io/v1 and v1beta2): only the fields that the chart uses, closed to any other.
"""

from typing import Any, Final


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


_TEXT: Final = {"type": "string", "minLength": 1}
_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_DURATION: Final = {"type": "string", "pattern": r"^([0-9]+(ms|[smhdwy]))+$"}
_METADATA: Final = _object("name", "namespace", name=_TEXT, namespace=_TEXT, labels=_TEXTS)
_STRIMZI_METADATA: Final = _METADATA | {
    "properties": _METADATA["properties"]
    | {"labels": _TEXTS | {"required": ["strimzi.io/cluster"]}}
}

_RULE: Final = _object(
    "alert",
    "expr",
    alert=_TEXT,
    expr=_TEXT,
    labels=_TEXTS,
    annotations=_TEXTS,
    keep_firing_for=_DURATION,
    **{"for": _DURATION},
)
_GROUP: Final = _object(
    "name",
    name=_TEXT,
    interval=_DURATION,
    rules={
        "type": "array",
        "items": {
            "anyOf": [_RULE, _object("record", "expr", record=_TEXT, expr=_TEXT, labels=_TEXTS)]
        },
    },
)
_OPERATION: Final = {
    "enum": [
        *("Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction"),
        *("AlterConfigs", "DescribeConfigs", "IdempotentWrite", "All"),
    ]
}
_NAMED: Final = _object(
    "type",
    "name",
    type={"enum": ["topic", "group", "transactionalId"]},
    name=_TEXT,
    patternType={"enum": ["literal", "prefix"]},
)
_ACL: Final = _object(
    "resource",
    "operations",
    resource={"oneOf": [_NAMED, _object("type", type={"const": "cluster"})]},
    operations={"type": "array", "items": _OPERATION, "minItems": 1},
    host=_TEXT,
    type={"enum": ["allow", "deny"]},
)


def _whole(metadata: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return _object(
        *("apiVersion", "kind", "metadata", "spec"),
        apiVersion=_TEXT,
        kind=_TEXT,
        metadata=metadata,
        spec=spec["spec"],
    )


_TOPIC: Final = _whole(
    _STRIMZI_METADATA,
    spec=_object(
        topicName={"type": "string", "pattern": r"^[A-Za-z0-9._-]{1,249}$"},
        partitions={"type": "integer", "minimum": 1},
        replicas={"type": "integer", "minimum": 1, "maximum": 32767},
        config={"type": "object"},
    ),
)
_USER: Final = _whole(
    _STRIMZI_METADATA,
    spec=_object(
        authentication=_object("type", type={"enum": ["tls", "tls-external", "scram-sha-512"]}),
        authorization=_object(
            *("type", "acls"), type={"const": "simple"}, acls={"type": "array", "items": _ACL}
        ),
    ),
)
_MONITOR: Final = _whole(
    _METADATA,
    spec=_object(
        *("selector", "endpoints"),
        selector=_object(matchLabels=_TEXTS),
        namespaceSelector=_object(matchNames={"type": "array", "items": _TEXT}),
        endpoints={
            "type": "array",
            "minItems": 1,
            "items": _object(
                port=_TEXT,
                path=_TEXT,
                interval=_DURATION,
                scrapeTimeout=_DURATION,
                relabelings={
                    "type": "array",
                    "items": _object(
                        action=_TEXT,
                        regex=_TEXT,
                        replacement=_TEXT,
                        sourceLabels={"type": "array", "items": _TEXT},
                        targetLabel=_TEXT,
                    ),
                },
            ),
        },
    ),
)

SCHEMAS: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("monitoring.coreos.com/v1", "ServiceMonitor"): _MONITOR,
    ("monitoring.coreos.com/v1", "PrometheusRule"): _whole(
        _METADATA, spec=_object("groups", groups={"type": "array", "items": _GROUP})
    ),
    ("kafka.strimzi.io/v1", "KafkaTopic"): _TOPIC,
    ("kafka.strimzi.io/v1", "KafkaUser"): _USER,
    ("kafka.strimzi.io/v1beta2", "KafkaTopic"): _TOPIC,
    ("kafka.strimzi.io/v1beta2", "KafkaUser"): _USER,
}
