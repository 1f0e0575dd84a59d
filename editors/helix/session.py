"""A session in a real Helix: the blocks of docs/editors.md as they stand there, a terminal, the real binary."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

ROOT, PROJECT = Path(os.environ["ROOT"]), Path(os.environ["PROJECT"])
CONFIG = Path(os.environ["XDG_CONFIG_HOME"]) / "helix"
LOG = Path(os.environ["XDG_CACHE_HOME"]) / "helix" / "helix.log"
LIMIT = 30


def fail(text):
    print(f"helix: {text}", file=sys.stderr)
    sys.exit(1)


def configure():
    """As the section says: its settings, its commands, its query of indentation."""
    section = (ROOT / "docs/editors.md").read_text().split("\n## Helix\n", 1)[1].split("\n## ", 1)[0]
    blocks = dict(re.findall(r"```(toml|sh|scheme)\n(.*?)```", section, re.S))
    subprocess.run(["sh", "-euc", blocks["sh"]], cwd=ROOT, check=True)
    (CONFIG / "languages.toml").write_text(blocks["toml"])
    (CONFIG / "runtime/queries/beamtalk/indents.scm").write_text(blocks["scheme"])
    health = subprocess.run(["hx", "--health", "beamtalk"], capture_output=True, text=True).stdout
    for wanted in ("beamtalk: ", "Tree-sitter parser: ✓", "Highlight queries: ✓", "Indent queries: ✓"):
        if wanted not in re.sub("\x1b\\[[0-9;]*m", "", health):
            fail(f"`hx --health beamtalk` does not say '{wanted}':\n{health}")


class Terminal:
    def __init__(self, command):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            os.execvp(command[0], command)
        self.shown = b""

    def read(self, seconds):
        ready, _, _ = select.select([self.file], [], [], seconds)
        if ready:
            try:
                self.shown += os.read(self.file, 65536)
            except OSError:
                fail("the editor ended")

    def keys(self, text):
        os.write(self.file, text.encode())

    def until(self, what, condition):
        """Read what the editor shows until something has happened."""
        deadline = time.monotonic() + LIMIT
        while not condition():
            if time.monotonic() > deadline:
                log = LOG.read_text(errors="replace")[-2000:] if LOG.exists() else ""
                fail(f"waited in vain for {what}\n{log}")
            self.read(0.05)


def main():
    configure()
    source = PROJECT / "src/Lamp.bt"
    source.write_text(source.read_text() + "\n  twice =>\n    self toggle\n    self toggle\n")
    line = source.read_text().splitlines().index("  toggle => self.on := self.on not") + 1
    editor = Terminal(["hx", "-vv", "--log", str(LOG), f"{source}:{line}:4"])
    logged = lambda word: LOG.exists() and word in LOG.read_text(errors="replace")
    try:
        editor.until("diagnostics", lambda: logged("publishDiagnostics"))
        editor.until("the text on the screen", lambda: b"toggle" in editor.shown)
        editor.keys(" k")
        editor.until("hover", lambda: b"Switches" in editor.shown and logged("textDocument/hover"))
        editor.shown = b""
        editor.keys("\x1b")
        editor.until("the end of hover", lambda: editor.shown)
        editor.keys(" r")
        editor.until("the prompt of rename", lambda: b"rename-to" in editor.shown)
        editor.keys("\x15flip\r")
        editor.until("rename", lambda: logged("textDocument/rename"))
        editor.keys(":wa\r")
        editor.until("the renamed file", lambda: source.read_text().count("flip") == 3)
        if "toggle" in source.read_text():
            fail(f"rename left a sender:\n{source.read_text()}")
        editor.keys(":q!\r")
    finally:
        os.kill(editor.pid, signal.SIGTERM)
        os.waitpid(editor.pid, 0)
    version = subprocess.run(["hx", "--version"], capture_output=True, text=True).stdout.strip()
    print(f"{version}: grammar, queries, diagnostics, hover, rename")


main()
