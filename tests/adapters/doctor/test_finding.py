from bridge.adapters.doctor.finding import Finding, Result, fail, ok, skip, warn


def test_what_the_helpers_make() -> None:
    assert ok("well", "it") == Finding(result=Result.OK, about="it", found="well")
    assert skip("off").result is Result.SKIP
    warned = warn("so so", mend="mend it", commands=["do this"])
    assert (warned.result, warned.mend, warned.commands) == (Result.WARN, "mend it", ("do this",))
    assert fail("bad", mend="mend it").result is Result.FAIL
