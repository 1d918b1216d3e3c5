"""A script that becomes a command: it joins cgroups, asks to end with its parent, and gives way to the command.

    python child.py PARENT_PID CGROUP_FOLDER... -- COMMAND...

It runs before the command, so nothing of the command ever runs outside its cgroups. `subprocess` could do
this in `preexec_fn`, which may deadlock in a process that has threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
FAILED = 70


def main(words: list[str]) -> None:
    end = words.index("--")
    parent, folders, command = int(words[0]), words[1:end], words[end + 1 :]
    for folder in folders:
        (Path(folder) / "cgroup.procs").write_text(str(os.getpid()))
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == parent:  # otherwise it died before it could be watched
        os.execvp(command[0], command)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as failure:
        print(f"Error: {failure}", file=sys.stderr)
    sys.exit(FAILED)
