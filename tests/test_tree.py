"""Tests mirror the tree: bridge/wire/cursor.py is tested by tests/wire/test_cursor.py."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
EXCEPTIONS = {
    "protocol/commands.py": "declarations only; every session test compares them",
    "protocol/events.py": "declarations only; every session test sends them",
}


def without_test(package: Path, tests: Path) -> set[str]:
    modules = {path.relative_to(package) for path in package.rglob("*.py")}
    return {
        str(module)
        for module in modules
        if module.name != "__init__.py"
        and not (tests / module.with_name(f"test_{module.name}")).exists()
    }


def test_every_module_has_its_test_file() -> None:
    assert without_test(ROOT / "bridge", ROOT / "tests") == set(EXCEPTIONS)


def test_every_module_of_the_jobs_has_its_test_file() -> None:
    assert without_test(ROOT / "spark" / "msmq_jobs", ROOT / "tests" / "spark") == set()
