"""The doc runner on small pages: it remembers, waits, ends what it started, and tells the truth."""

from pathlib import Path

import pytest

from tests.docs.runner import Failed, checkout, run_page


def run(folder: Path, page: str) -> list[str]:
    file = folder / "PAGE.md"
    file.write_text(page)
    return run_page(file, folder)


def test_the_shell_remembers(tmp_path: Path) -> None:
    page = (
        "```sh\nmkdir inside\ncd inside\nexport NAME=value\n```\n"
        "<!-- doc: file inside/f.txt -->\n```text\nhello\n```\n"
        "```console\n$ cat f.txt; echo $NAME\nhello\nvalue\n```\n"
    )
    assert run(tmp_path, page)[-1] == "cat f.txt; echo $NAME"


def test_commands_that_stay(tmp_path: Path) -> None:
    page = (
        '<!-- doc: background until "ready:" -->\n'
        "```sh\necho first > a\ntrap 'echo bye > ended; exit' INT; echo ready: 1; "
        "while true; do sleep 0.05; done\n```\n```sh\ncat a\n```\n"
    )
    assert len(run(tmp_path, page)) == 3
    assert (tmp_path / "ended").read_text() == "bye\n"


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("```sh\ntrue\nfalse\n```\n", "PAGE.md:3: exit code 1 instead of 0: false"),
        ("```sh\nfalse | cat\n```\n", "PAGE.md:2: exit code 1"),
        ("```sh\ntrue # exit code 2\n```\n", "PAGE.md:2: exit code 0 instead of 2"),
        ("```console\n$ echo a\nb\n```\n", "PAGE.md:2: echo a\nthe page shows 'b', printed is 'a'"),
        (
            '<!-- doc: background until "x" -->\n```sh\necho y\n```\n',
            "PAGE.md:3: echo y\nno 'x' in",
        ),
    ],
)
def test_a_page_that_is_not_true(page: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(Failed) as caught:
        run(tmp_path, page)
    assert str(caught.value).startswith(why)


def test_what_is_skipped_is_told(tmp_path: Path) -> None:
    assert run(tmp_path, "<!-- doc: skip, why not -->\n```sh\nfalse\n```\n") == [
        "skipped false (why not)"
    ]


def test_a_checkout_of_its_own(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "repo")
    (folder / "mappings" / "new.yaml").write_text("queues: []")
    assert run(folder, "```sh\nmsmq-bridge --version\nls mappings/new.yaml Makefile\n```\n")
