"""The doc runner's reading of a page: which commands, what they should print, what may differ."""

import pytest

from tests.docs.blocks import BadPageError, blocks_of, difference, loosely

PAGE = """\
# Title

```sh
echo one   # a comment

# only a comment
echo two \\
  three
for i in 1 2; do
  echo $i
done
cat <<END
text
END
```

```yaml
not: run
```

<!-- doc: skip, it downloads -->
```sh
git clone somewhere
```

- a list
  ```console
  $ echo "a
  > b"
  a
  b
  $ false # exit code 1
  ```

<!-- doc: background until "ready:" -->

~~~sh
sleep 1; echo ready:
~~~
"""


def test_commands_of_a_page() -> None:
    blocks = blocks_of(PAGE)
    assert [block.language for block in blocks] == ["sh", "sh", "console", "sh"]
    assert [command.text for command in blocks[0].commands()] == [
        "echo one   # a comment",
        "echo two \\\n  three",
        "for i in 1 2; do\n  echo $i\ndone",
        "cat <<END\ntext\nEND",
    ]
    assert [command.line for command in blocks[0].commands()] == [4, 7, 9, 12]
    assert blocks[1].skip == "it downloads"
    first, second = blocks[2].commands()
    assert (first.text, first.shown, first.exit_code) == ('echo "a\nb"', ["a", "b"], 0)
    assert (second.text, second.shown, second.exit_code) == ("false # exit code 1", [], 1)
    assert blocks[3].until == "ready:"


@pytest.mark.parametrize(
    "page",
    [
        "<!-- doc: skip -->\n```sh\nx\n```\n",  # no reason
        "<!-- doc: sleep 5 -->\n```sh\nx\n```\n",
        "<!-- doc: skip, it is far -->\ntext\n```sh\nx\n```\n",
        "<!-- doc: skip, it is far -->\n",
        "```sh\nx\n",
        "```console\noutput\n```\n",
        "```sh\nfor i in 1; do\n```\n",
    ],
)
def test_pages_that_break_the_convention(page: str) -> None:
    with pytest.raises(BadPageError):
        [block.commands() for block in blocks_of(page)]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("demo-3@1031", "demo-0@7"),
        ("b90d0d5d-2343-4541-a02e-8c7b22c5d08e\\1000", "11111111-2222-3333-4444-555555555555\\1"),
        ("Kafka 127.0.0.1:43719", "Kafka 127.0.0.1:9092"),
        ("at 2026-01-31T12:00:00.123Z", "at 2027-02-01T00:00:00Z"),
        ("│ seconds │ 0.31 │", "│ seconds    │ 12 │"),
        ("├──────┤", "├───┤"),
        ("1,000 records", "7 records"),
        ("0x10ab", "0xffff00"),
    ],
)
def test_what_may_differ(one: str, two: str) -> None:
    assert loosely(one) == loosely(two)


@pytest.mark.parametrize(("one", "two"), [("demo", "inbox"), ("a b", "ab"), ("-1", "1")])
def test_what_may_not(one: str, two: str) -> None:
    assert loosely(one) != loosely(two)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a", "b"], ["a", "", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        (["a", "c"], ["a", "b", "c"], False),
        (["a", "...", "c"], ["a", "b", "b", "c"], True),
        (["a", "…", "c"], ["a", "c"], True),
        (["…", "c"], ["a", "c", "d"], False),
        (["a", "…"], ["a", "b", "c"], True),
        (["from … to b"], ["from x y to b"], True),
        (["from … to b"], ["from x y to c"], False),
        ([], ["a"], False),
    ],
)
def test_what_is_shown_is_what_is_printed(shown: list[str], printed: list[str], same: bool) -> None:
    assert (difference(shown, printed) == "") is same
