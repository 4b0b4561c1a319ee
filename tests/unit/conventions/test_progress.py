"""Progress: a line on a terminal from the second second on, nothing in a pipe. Time is faked."""

import io
from types import SimpleNamespace

import pytest

from kubectl_ghost.conventions import progress
from kubectl_ghost.conventions.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=50.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(progress, "time", clock)
    return clock


def drawn(stream, clock, *moments):
    """What is written when it is called at these moments, so many seconds after the start."""
    with ProgressLine("nodes Ready", stream) as line:
        start = clock.now
        for number, moment in enumerate(moments, 1):
            clock.now = start + moment
            line(number, 9)
        return stream.getvalue()


def test_nothing_is_written_where_there_is_no_terminal(clock):
    stream = io.StringIO()
    assert drawn(stream, clock, 0, 1.5, 100) == ""
    assert stream.getvalue() == ""


def test_nothing_is_drawn_within_the_first_second(clock):
    stream = Terminal()
    assert drawn(stream, clock, 0, 0.5, 0.99) == ""
    assert stream.getvalue() == ""


def test_after_a_second_a_line_is_drawn(clock):
    assert drawn(Terminal(), clock, 0, 1.0) == "\r2/9 nodes Ready\x1b[K"


def test_it_is_redrawn_ten_times_a_second_and_no_more(clock):
    assert drawn(Terminal(), clock, 1.0, 1.05, 1.125, 1.15).count("\r") == 2


def test_at_the_end_the_line_is_cleared(clock):
    stream = Terminal()
    before = drawn(stream, clock, 2)
    assert stream.getvalue() == f"{before}\r\x1b[K"


def test_the_line_is_cleared_after_an_error_too(clock):
    stream = Terminal()
    line = ProgressLine("nodes Ready", stream)
    clock.now += 2

    def fail():
        with line:
            line(1, 2)
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fail()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_it_is_drawn_on_standard_error(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with ProgressLine("nodes Ready") as line:
        clock.now += 2
        line(1, 2)
    assert "1/2 nodes Ready" in terminal.getvalue()
