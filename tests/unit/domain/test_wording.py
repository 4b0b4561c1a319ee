"""Numbers with their nouns."""

import pytest

from kubectl_ghost.domain.wording import counted


@pytest.mark.parametrize(("number", "text"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes")])
def test_one_alone_is_singular(number, text):
    assert counted(number, "node") == text
