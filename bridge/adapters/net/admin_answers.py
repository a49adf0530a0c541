"""What the admin port answers: JSON, errors too."""

from __future__ import annotations

import json
from http import HTTPStatus

import msgspec
from aiohttp import web

from bridge.core.reload import OrderWouldBreak
from bridge.core.retained.errors import Refused
from bridge.model.errors import BridgeError, ConfigError, IllegalName, Unavailable


def answer(data: object, status: int = HTTPStatus.OK) -> web.Response:
    return web.json_response(data, status=status, dumps=dumped)


def dumped(data: object) -> str:
    """ASCII: half a surrogate pair, lawful in a label, is an escape."""
    return json.dumps(data) + "\n"


def failure(error: BridgeError) -> web.Response:
    """What went wrong, for programs and for people; an error of no known kind is a bug."""
    data: dict[str, object] = {"error": str(error)}
    match error:
        case Refused():
            is_missing = error.status.name.endswith("_NOT_FOUND")
            data |= {"status": error.status.name, "code": f"0x{error.status:08X}"}
            return answer(data, HTTPStatus.NOT_FOUND if is_missing else HTTPStatus.CONFLICT)
        case OrderWouldBreak():
            data["breaks_order"] = [msgspec.structs.asdict(one) for one in error.breaks]
            return answer(data, HTTPStatus.CONFLICT)
        case ConfigError() | IllegalName():
            return answer(data, HTTPStatus.BAD_REQUEST)
        case Unavailable():
            return answer(data, HTTPStatus.SERVICE_UNAVAILABLE)
    raise error
