"""The reader of Containerfiles, on small ones."""

from pathlib import Path

import pytest

from tests.container.recipe import Step, last, lineage, read_recipe

TEXT = """\
# A comment.
ARG IMAGE=python:3
FROM ${IMAGE} AS first
ENV A=/a \\
    B="two words"
# In between.
RUN one && \\
    two
FROM first AS second
COPY --from=first /a /b
USER 0
USER 7
CMD ["x", "y z"]
"""


def test_stages_and_steps(tmp_path: Path) -> None:
    (tmp_path / "c").write_text(TEXT)
    stages = read_recipe(tmp_path / "c")
    assert [(s.name, s.parent) for s in stages.values()] == [
        ("first", "python:3"),
        ("second", "first"),
    ]
    env, run = stages["first"].steps
    assert env.pairs() == {"A": "/a", "B": "two words"}
    assert (run.word, run.rest.split()) == ("RUN", ["one", "&&", "two"])
    [copy] = stages["second"].all("COPY")
    assert copy.flags() == ({"from": "first"}, ["/a", "/b"])
    assert [stage.name for stage in lineage(stages, "second")] == ["first", "second"]
    assert last(stages, "second", "USER") == Step(12, "USER", "7")
    assert last(stages, "second", "CMD").array() == ["x", "y z"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("FROM a AS b\nADD x y\n", "nobody knows ADD"), ("FROM a AS b\nRUN x \\\n", "goes on")],
)
def test_what_it_does_not_take(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "c").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_recipe(tmp_path / "c")
