"""Runs the broker and ends it when our process is gone, however that died.

    python launcher.py FD COMMAND...

Our process holds the other end of stdin: when it closes, the broker is asked to stop, then killed.
The broker in turn gets SIGKILL from the kernel when this launcher is gone (PR_SET_PDEATHSIG is
bound to the thread that forks, so it is set here, where there is one thread, and not by our
process, whose threads come and go). FD is an open file that the broker shall hold (its lock).
The broker's pid goes to stdout, its output to stderr. Runs alone, on the standard library.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1  # prctl(2)
GRACE_S: Final = 5.0
CHECK_S: Final = 1.0


def main() -> int:
    kept, command = int(sys.argv[1]), sys.argv[2:]
    parent = os.getppid()
    broker = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=sys.stderr,
        pass_fds=(kept,),
        preexec_fn=die_with_parent,
    )
    os.close(kept)
    # A SIGTERM for everyone (a service manager's) is the broker's to obey; we end when it does.
    signal.signal(signal.SIGTERM, lambda *_: None)
    sys.stdout.write(f"{broker.pid}\n")
    sys.stdout.close()
    wait_for_either(broker, parent)
    return end(broker)


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_for_either(broker: "subprocess.Popen[bytes]", parent: int) -> None:
    """Until the broker has ended, or our process has."""
    ended = os.pidfd_open(broker.pid)
    # The parent's number counts too: a child that it forked may hold stdin open.
    while broker.poll() is None and os.getppid() == parent:
        readable, _, _ = select.select([ended, 0], [], [], CHECK_S)
        if 0 in readable and not os.read(0, 1):
            break
    os.close(ended)


def end(broker: "subprocess.Popen[bytes]") -> int:
    if broker.poll() is None:
        broker.terminate()
        try:
            broker.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            broker.kill()
    code = broker.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
