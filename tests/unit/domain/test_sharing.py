"""--sharing: what is understood, and where the device plugin can do it."""

import pytest

from kubectl_ghost.domain.errors import InputError
from kubectl_ghost.domain.hardware import Sharing, SharingKind
from kubectl_ghost.domain.sharing import parse_sharing


@pytest.mark.parametrize(
    ("text", "renamed", "meant"),
    [
        ("time-slicing=4", False, Sharing(SharingKind.TIME_SLICING, 4)),
        ("time-slicing=256", True, Sharing(SharingKind.TIME_SLICING, 256, renamed=True)),
        ("mps=2", False, Sharing(SharingKind.MPS, 2)),
        ("mps=48", False, Sharing(SharingKind.MPS, 48)),
        ("none", False, "none"),
    ],
)
def test_what_users_write(text, renamed, meant):
    assert parse_sharing(text, renamed=renamed) == meant


@pytest.mark.parametrize(
    "text", ["", "4", "mps", "mps=", "mps=x", "mps=-2", "MPS=2", "time_slicing=2", "mps=4,time-slicing=4", "mps=٢"]
)
def test_anything_else_is_refused_with_the_right_spelling(text):
    with pytest.raises(InputError, match="invalid --sharing") as refusal:
        parse_sharing(text)
    assert "time-slicing=4" in refusal.value.hint


@pytest.mark.parametrize(
    ("text", "bounds"), [("time-slicing=1", "2 to 256"), ("mps=0", "2 to 48"), ("mps=49", "2 to 48")]
)
def test_numbers_that_the_device_plugin_refuses(text, bounds):
    with pytest.raises(InputError, match=bounds):
        parse_sharing(text)


def test_no_shares_have_no_other_name():
    with pytest.raises(InputError, match="--rename-by-default"):
        parse_sharing("none", renamed=True)
