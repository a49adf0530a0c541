from tests.adapters.reader.conftest import served

__all__ = ["served"]
