"""Which files a process may read once it decides: Python, its packages and the submitted agent (Landlock)."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CREATE, ADD, RESTRICT = 444, 445, 446  # system calls, the same on all architectures
ASK_VERSION = 1
BENEATH = 1
READ_FILE, READ_FOLDER = 1 << 2, 1 << 3
OF_VERSION = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of rights on files that the kernel knows from a version on."""
TCP = 0b11  # from version 4: binding and connecting
SCOPES = 0b11  # from version 6: sockets and signals of other processes
NO_NEW_PRIVILEGES = 38

LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/urandom")
PACKAGES = ("gpusched_env", "gpusched_baselines", "gpusched_agents", "gpusched_experiments")


def see_few_files(more: Iterable[Path]) -> bool:
    """Let this process read no files from now on but Python's, packages', and `more`; say whether that is so.

    Nor may it write to any, reach the network, look into another process, or send it a signal, as far as the kernel
    knows how to forbid that.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(CREATE, None, 0, ASK_VERSION)
    if version < 1:
        return False
    rights = (1 << max(count for since, count in OF_VERSION.items() if version >= since)) - 1
    ruled = struct.pack("<QQQ", rights, TCP if version >= 4 else 0, SCOPES if version >= 6 else 0)
    length = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(CREATE, ruled, length, 0)
    if ruleset < 0:
        return False
    for path in (*_of_python(), *map(Path, LIBRARIES), *more):
        _let_read(libc, ruleset, path)
    done = libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and libc.syscall(RESTRICT, ruleset, 0) == 0
    os.close(ruleset)
    return bool(done)


def _of_python() -> list[Path]:
    """List the folders of Python and of what is installed, and of these packages wherever they lie."""
    places = [Path(path) for name, path in sysconfig.get_paths().items() if name.endswith(("lib", "stdlib"))]
    places += [Path(path) for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
    found = (find_spec(name) for name in PACKAGES)
    return [*places, *(Path(spec.origin).parent for spec in found if spec is not None and spec.origin)]


def _let_read(libc: ctypes.CDLL, ruleset: int, path: Path) -> None:
    """Add a file, or a folder with all below it, if it is there."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    rights = READ_FILE | READ_FOLDER if path.is_dir() else READ_FILE
    libc.syscall(ADD, ruleset, BENEATH, struct.pack("<Qi", rights, place), 0)
    os.close(place)
