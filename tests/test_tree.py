"""Tests mirror the tree: bridge/wire/cursor.py is tested by tests/wire/test_cursor.py."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
EXCEPTIONS = {
    "protocol/commands.py": "declarations only; every session test compares them",
    "protocol/events.py": "declarations only; every session test sends them",
}


def test_every_module_has_its_test_file() -> None:
    modules = {
        path.relative_to(ROOT / "bridge")
        for path in (ROOT / "bridge").rglob("*.py")
        if path.name != "__init__.py"
    }
    without = {
        str(module)
        for module in modules
        if not (ROOT / "tests" / module.with_name(f"test_{module.name}")).exists()
    }
    assert without == set(EXCEPTIONS)
