"""What a Markdown page asks a reader to type, and what it says he will see.

Every ```sh and ```console block counts. In a `sh` block every line is a command; in a `console`
block lines that begin with `$ ` are (`> ` continues one), the others are what it prints. An HTML
comment right before a block, which no reader sees, changes how it is taken:

    <!-- doc: background until "ready:" -->   its last command stays until the end of the page;
                                              the page goes on when it has printed that
    <!-- doc: skip, because it downloads -->  not run; the reason has to be there
    <!-- doc: file bridge.yaml -->            a block of any language is written to that file

A comment in the command, `# exit code 2`, says what it ends with when that is not 0. In what is
shown, a line `...` (or `…`) stands for any lines and `…` inside a line for any text; numbers,
GUIDs, times, addresses and the widths of tables may differ.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_DIRECTIVE = re.compile(r"\s*<!--\s*doc:\s*(.*?)\s*-->\s*")
_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*([\w-]*)\s*")
_BACKGROUND = re.compile(r'background until "([^"]+)"')
_SKIP = re.compile(r"skip, (\S.*)")
_FILE = re.compile(r"file (\S+)")
_EXIT = re.compile(r"#.*\bexit code (\d+)")
LANGUAGES = ("sh", "console")


class BadPageError(Exception):
    """The page does not keep the convention."""


@dataclass(slots=True)
class Command:
    line: int
    text: str
    shown: list[str] | None = None  # None: the page does not say what it prints

    @property
    def exit_code(self) -> int:
        found = _EXIT.search(self.text)
        return int(found[1]) if found else 0


@dataclass(slots=True)
class Block:
    line: int
    language: str
    lines: list[str] = field(default_factory=list)
    until: str = ""  # background
    skip: str = ""  # the reason
    file: str = ""

    def commands(self) -> list[Command]:
        if self.language == "console":
            return list(_console(self))
        return list(_shell(self.line, self.lines))


def blocks_of(page: str) -> list[Block]:
    """Those that are to be done, in their order; skipped ones too."""
    return [b for b in _blocks(page.splitlines()) if b.language in LANGUAGES or b.file]


def _blocks(lines: Sequence[str]) -> Iterator[Block]:
    directive, fence, indent, block = "", "", "", Block(0, "")
    for number, line in enumerate(lines, 1):
        found = _FENCE.fullmatch(line)
        if fence:
            if found and found[2].startswith(fence) and not found[3]:
                yield block
                fence = ""
            else:
                block.lines.append(line.removeprefix(indent))
        elif found:
            indent, fence = found[1], found[2]
            block = _directed(Block(number, found[3]), directive)
            directive = ""
        elif told := _DIRECTIVE.fullmatch(line):
            directive = told[1]
        elif line.strip() and directive:
            raise BadPageError(f"line {number}: 'doc: {directive}' is not right before a block")
    if fence or directive:
        raise BadPageError(f"line {block.line}: a block is not closed, or a directive has none")


def _directed(block: Block, directive: str) -> Block:
    if not directive:
        return block
    if found := _BACKGROUND.fullmatch(directive):
        block.until = found[1]
    elif found := _SKIP.fullmatch(directive):
        block.skip = found[1]
    elif found := _FILE.fullmatch(directive):
        block.file = found[1]
    else:
        raise BadPageError(f"line {block.line}: nobody knows 'doc: {directive}'")
    return block


def _shell(first: int, lines: Sequence[str]) -> Iterator[Command]:
    """Lines that the shell takes as one command are one: here-documents, loops, a backslash."""
    begun: list[str] = []
    for number, line in enumerate(lines, first + 1):
        if not begun and (not line.strip() or line.lstrip().startswith("#")):
            continue
        begun.append(line)
        if is_whole("\n".join(begun)):
            yield Command(number - len(begun) + 1, "\n".join(begun))
            begun = []
    if begun:
        raise BadPageError(f"line {first + len(lines)}: the command is not finished: {begun}")


def is_whole(text: str) -> bool:
    if text.endswith("\\"):
        return False
    checked = subprocess.run(["bash", "-n"], input=text + "\n", capture_output=True, text=True)
    return checked.returncode == 0 and not checked.stderr


def _console(block: Block) -> Iterator[Command]:
    command: Command | None = None
    is_open = False  # the command goes on
    for number, line in enumerate(block.lines, block.line + 1):
        if line.startswith("$ "):
            if command:
                yield command
            command, is_open = Command(number, line[2:], []), True
        elif command is None:
            raise BadPageError(f"line {number}: a console block begins with '$ command'")
        elif is_open and line.startswith("> "):
            command.text += f"\n{line[2:]}"
        else:
            is_open = False
            assert command.shown is not None
            command.shown.append(line)
    if command:
        yield command


_LOOSE = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "GUID"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([.,]\d+)?(Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b(0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{16,})\b", re.IGNORECASE), "HEX"),
    (re.compile(r"\d+([.,:_]\d+)*"), "N"),
    (re.compile("[─━═]+"), "─"),
    (re.compile(r"\s+"), " "),
)


def loosely(line: str) -> str:
    """The line without what may differ from run to run."""
    for pattern, word in _LOOSE:
        line = pattern.sub(word, line)
    return line.strip()


def difference(shown: Sequence[str], printed: Sequence[str]) -> str:
    """Empty when a reader would see what the page shows; else the first line that is not there."""
    wanted = [line for line in map(loosely, shown) if line]
    there = [line for line in map(loosely, printed) if line]
    at, anywhere = 0, False
    for line in wanted:
        if line in ("...", "…"):
            anywhere = True
            continue
        found = [i for i in range(at, len(there)) if _fits(line, there[i])]
        if not found or (not anywhere and found[0] != at):
            instead = there[at] if at < len(there) else "(nothing more)"
            return f"the page shows {line!r}, printed is {instead!r}"
        at, anywhere = found[0] + 1, False
    if at < len(there) and not anywhere:
        return f"the page does not show {there[at]!r}"
    return ""


def _fits(wanted: str, line: str) -> bool:
    pattern = ".*".join(re.escape(part.strip()) for part in wanted.split("…"))
    return re.fullmatch(pattern, line) is not None or wanted == line
