"""Secrets do not get into a log: the values that were read here, and what looks like one.

Whoever reads a password, a key or a token tells `SECRETS`; every line of the log goes through
`hide`, its traceback and what librdkafka says too.
"""

from __future__ import annotations

import re
from threading import Lock
from typing import Final
from urllib.parse import quote

MASK: Final = "***"
MOST: Final = 10_000  # values
_BEGINNING: Final = 64  # characters that give it away: a message may be cut behind them
SHORT: Final = 6  # characters; below that it may be a part of a word
_SENSITIVE: Final = re.compile(
    r"(?i)(password|passwd|passphrase|secret|token|nt_hash|jaas|api[._-]?key|private[._-]?key"
    r"|\bssl\.key\.pem|oauthbearer\.config)"
)
_PATTERNS: Final = (
    (re.compile(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*KEY-----|\Z)"), MASK),
    (re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s/@:]{0,255}:)[^\s/@]+@"), rf"\1{MASK}@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), rf"\1 {MASK}"),
    (
        re.compile(
            r"(?i)((?:password|passwd|passphrase|secret|token|nt_hash|jaas\.config|api[._-]?key"
            r"|ssl\.key\.pem)[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&}\]]+)"
        ),
        rf"\1{MASK}",
    ),
)


def is_sensitive(name: str) -> bool:
    """Whether a setting of this name is a secret, wherever its value stands."""
    return _SENSITIVE.search(name) is not None


class Secrets:
    """Values that are hidden. Bounded; the first ones stay."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._long: tuple[str, ...] = ()
        self._short: tuple[re.Pattern[str], ...] = ()
        self._known: set[str] = set()
        self._forms: set[str] = set()
        self._is_stale = False

    def add(self, *values: object) -> None:
        """Also as they look in a repr or in a URL."""
        with self._lock:
            for value in values:
                text = "" if value is None else str(value).strip()
                if text and text not in self._known and len(self._known) < MOST:
                    self._known.add(text)
                    self._remember(text)

    def _remember(self, text: str) -> None:
        forms = {text, repr(text)[1:-1], quote(text, safe="", errors="replace")}
        forms |= {form[:_BEGINNING] for form in forms if len(form) > _BEGINNING}
        self._forms |= forms
        self._is_stale = True

    def _sort(self) -> None:
        """Once for many: a file of users has thousands. The longest come first."""
        with self._lock:
            forms = sorted(self._forms, key=len, reverse=True)
            self._long = tuple(form for form in forms if len(form) >= SHORT)
            self._short = tuple(
                re.compile(rf"(?<!\w){re.escape(form)}(?!\w)") for form in forms[len(self._long) :]
            )
            self._is_stale = False

    def clear(self) -> None:
        with self._lock:
            self._known.clear()
            self._forms.clear()
            self._is_stale = True

    def hide(self, text: str) -> str:
        if self._is_stale:
            self._sort()
        for secret in self._long:
            if secret in text:
                text = text.replace(secret, MASK)
        for word in self._short:
            text = word.sub(MASK, text)
        for pattern, mask in _PATTERNS:
            text = pattern.sub(mask, text)
        return text

    def hide_value(self, name: str, text: str) -> str:
        return MASK if is_sensitive(name) else text


SECRETS: Final = Secrets()  # of this process, as its log is
