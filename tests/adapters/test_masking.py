"""No secret in a line, whoever writes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters.masking import MOST, Secrets, is_sensitive


def test_values_that_were_read_are_hidden_wherever_they_stand() -> None:
    secrets = Secrets()
    secrets.add("correct horse", "abc", None, "")
    assert (
        secrets.hide("wrong: 'correct horse' of abc, not abcd") == "wrong: '***' of ***, not abcd"
    )
    assert secrets.hide("%20: correct%20horse") == "%20: ***"  # as a URL has it


def test_a_secret_with_special_characters_is_hidden_in_its_repr() -> None:
    secrets = Secrets()
    secrets.add("pa\\ss\nword'x")
    assert "word" not in secrets.hide(repr({"k": "pa\\ss\nword'x"}))


def test_the_beginning_of_a_long_one_is_hidden_too() -> None:
    secrets = Secrets()
    secrets.add("key-" + "x" * 200)
    assert secrets.hide("not 'key-" + "x" * 73 + "...'") == "not '***" + "x" * 13 + "...'"
    secrets.clear()
    assert secrets.hide("key-" + "x" * 200) == "key-" + "x" * 200


def test_the_longest_goes_first() -> None:
    secrets = Secrets()
    secrets.add("secret-a", "secret-a-and-more")
    assert secrets.hide("secret-a-and-more") == "***"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sasl.password=hunter2, x", "sasl.password=***, x"),
        ("ssl.key.password: 'a b'", "ssl.key.password: ***"),
        ('{"password": "a b", "n": 1}', '{"password": ***, "n": 1}'),
        ("ann: {nt_hash: 8846f7eaee8fb117ad06bdd830b7586c}", "ann: {nt_hash: ***}"),
        ("GET http://ann:hunter2@host/x", "GET http://ann:***@host/x"),
        ("Authorization: Bearer abcdef0123", "Authorization: Bearer ***"),
        ("x-token=abc&y=1", "x-token=***&y=1"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----.", "***."),
        ("-----BEGIN PRIVATE KEY-----\\nMII cut", "***"),
        ("admin.token_file: everybody may read it", "admin.token_file: everybody may read it"),
        ("http://host:80/a b@c", "http://host:80/a b@c"),
    ],
)
def test_what_looks_like_a_secret(text: str, shown: str) -> None:
    assert Secrets().hide(text) == shown


def test_names_of_secrets() -> None:
    for name in ("sasl.password", "ssl.key.password", "sasl.jaas.config", "token", "Api-Key"):
        assert is_sensitive(name)
    for name in ("sasl.username", "bootstrap.servers", "peer", "reason"):
        assert not is_sensitive(name)


def test_their_number_is_bounded() -> None:
    secrets = Secrets()
    secrets._known.update(str(n) for n in range(MOST))
    secrets.add("one more secret")
    assert secrets.hide("one more secret") == "one more secret"


@given(st.text(min_size=1, max_size=40).filter(str.strip), st.text(max_size=40))
def test_any_value_is_gone(secret: str, rest: str) -> None:
    secrets = Secrets()
    secrets.add(secret)
    value = secret.strip()
    found = secrets.hide(f"{rest} {value} {rest}")
    if len(value) >= 6 and value not in rest and "***" not in value:
        assert value not in found
