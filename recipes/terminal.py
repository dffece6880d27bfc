"""Draw the terminal output of a command as an SVG, for the README and the documentation.

    python -m recipes.terminal docs/pictures/train.svg -- papi train --out runs/picture

The command runs in a real terminal (a pseudo-terminal) of 100 columns. The picture shows the final screen below
the prompt and the command. It is text: it can be searched and embeds no font.
"""

import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COLUMNS = 100
_FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)
_ERASED = re.compile(r"[^\n]*\r(?!\n)|\x1b\[2K|\x1b\[\?25[lh]")  # lines overwritten by a progress bar
_MOVED_UP = re.compile(r"\n?\x1b\[1A")


def printed(command: list[str]) -> str:
    """Run a command in a terminal and return its output, including colours."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, close_fds=True)
    os.close(slave)
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    if process.wait() != 0:
        raise SystemExit(f"{shlex.join(command)} ended with {process.returncode}.")
    return b"".join(parts).decode()


def screen(text: str) -> str:
    """The final screen, after progress bars have overwritten themselves."""
    return _ERASED.sub("", _MOVED_UP.sub("", text.replace("\r\n", "\n"))).rstrip("\n")


def picture(command: list[str], text: str) -> str:
    """The screen as a self-contained SVG."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ {shlex.join(command)}\n{text}"), overflow="fold")
    return console.export_svg(title="papi", theme=MONOKAI, code_format=_FONTS.sub("", CONSOLE_SVG_FORMAT))


def main(file: Path, command: list[str]) -> None:
    """Write the picture."""
    file.write_text(picture(command, screen(printed(command))))
    print(f"{file} shows {shlex.join(command)}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[3:])
