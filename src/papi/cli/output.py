"""Standard output and errors that may be closed, full, or no longer read."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


def open_streams() -> None:
    """Give a process its three standard streams, and a stream that was closed (`papi … >&-`) the null device.

    Otherwise the next file that is opened would take the number of a closed stream, and messages would end up in it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(os.dup(1), "w")  # Python leaves None where a stream was closed
    sys.stderr = sys.stderr or os.fdopen(os.dup(2), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal with few characters shows ? for the rest


class Output(io.TextIOBase):
    """Standard output that remembers whether it has failed. After a failure, nothing more is written.

    One that is `lasting` does not raise the failure.
    """

    def __init__(self, stream: TextIO, *, lasting: bool = False) -> None:
        self.failure: OSError | None = None
        self._stream, self._lasting = stream, lasting

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return self._stream.encoding

    def isatty(self) -> bool:
        """Return whether a terminal shows the text."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return self._stream.fileno()

    def write(self, text: str, /) -> int:
        """Write a text, unless writing has failed before."""
        with self._guarded():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Bring what was written to the reader, unless writing has failed before."""
        with self._guarded():
            self._stream.flush()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failure = self.failure or error
            self._silence()
            if not self._lasting:
                raise

    def _silence(self) -> None:
        """Send what is still to be written to the null device: Python writes it again when it ends."""
        with suppress(OSError, ValueError):  # a stream without a descriptor, as in tests, needs nothing
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            self._stream.flush()

    @contextmanager
    def installed(self) -> Iterator["Output"]:
        """Let everything that is printed go through this stream."""
        before, sys.stdout = sys.stdout, self
        try:
            yield self
        finally:
            sys.stdout = before


@contextmanager
def lasting_output() -> Iterator[None]:
    """Let work go on if standard output fails, because its result is in files.

    At the end, a sentence on standard error and exit code 1 say that output was lost.
    """
    with Output(sys.stdout, lasting=True).installed() as output:
        yield
        output.flush()
    if output.failure is not None:
        reason = output.failure.strerror or output.failure
        print(f"papi: everything was written, but standard output failed ({reason}).", file=sys.stderr)
        sys.exit(1)
