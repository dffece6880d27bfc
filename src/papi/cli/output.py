"""Handles standard output and standard error that are closed, on a full disk, or no longer read."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


def open_streams() -> None:
    """Connect standard streams that are closed (`papi … >&-`) to the null device.

    Otherwise the next opened file would get the descriptor of the closed stream, and messages would be written to it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(os.dup(1), "w")  # Python sets a closed stream to None
    sys.stderr = sys.stderr or os.fdopen(os.dup(2), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # show ? for characters that the terminal's encoding lacks


class Output(io.TextIOBase):
    """Standard output that records a failure. After a failure, nothing more is written.

    With `lasting`, the failure is not raised.
    """

    def __init__(self, stream: TextIO, *, lasting: bool = False) -> None:
        self.failure: OSError | None = None
        self._stream, self._lasting = stream, lasting

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return self._stream.encoding

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return self._stream.fileno()

    def write(self, text: str, /) -> int:
        """Write text, unless writing has failed before."""
        with self._guarded():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, unless writing has failed before."""
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
        """Redirect the stream to the null device, because Python flushes its buffer again at exit."""
        with suppress(OSError, ValueError):  # a stream without a descriptor, as in tests, needs no redirection
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            self._stream.flush()

    @contextmanager
    def installed(self) -> Iterator["Output"]:
        """Replace `sys.stdout` by this stream."""
        before, sys.stdout = sys.stdout, self
        try:
            yield self
        finally:
            sys.stdout = before


@contextmanager
def lasting_output() -> Iterator[None]:
    """Continue to work if standard output fails, because the results are written to files.

    At the end, a message on standard error and exit code 1 report the lost output.
    """
    with Output(sys.stdout, lasting=True).installed() as output:
        yield
        output.flush()
    if output.failure is not None:
        reason = output.failure.strerror or output.failure
        print(f"papi: all files were written, but standard output failed ({reason}).", file=sys.stderr)
        sys.exit(1)
