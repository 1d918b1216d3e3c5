"""Is there a Java that Spark can run on? Asked before a JVM is started, for a one-line answer."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from penstock.core.errors import BadInput

JAVA_MIN = 17
_CURE = "install the Debian package default-jre-headless, or set JAVA_HOME"


def need_java() -> None:
    """Refuse to go on without Java 17 or newer."""
    java = _java()
    if java is None:
        raise BadInput(f"Spark needs Java {JAVA_MIN} or newer and none was found: {_CURE}")
    version = _version(java)
    if version is not None and version < JAVA_MIN:
        raise BadInput(f"Spark needs Java {JAVA_MIN} or newer, and {java} is version {version}: {_CURE}")


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return java if os.access(java, os.X_OK) else None
    found = shutil.which("java")
    return Path(found) if found else None


def _version(java: Path) -> int | None:
    # Read from the installation's `release` file: `java -version` would cost 0.1 s at every start.
    release = java.resolve().parent.parent / "release"
    try:
        match = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', release.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return int(match[1]) if match else None
