"""Where `metrics serve` and `metrics port-forward` listen, and what they tell of it."""

import pytest

from kubectl_ghost import cli
from kubectl_ghost.commands.listening import metrics_url
from kubectl_ghost.conventions.exit_codes import ExitCode


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("127.0.0.1", "http://localhost:9400/metrics"),
        ("::1", "http://localhost:9400/metrics"),
        ("0.0.0.0", "http://0.0.0.0:9400/metrics"),
        ("::", "http://[::]:9400/metrics"),
        ("fe80::1", "http://[fe80::1]:9400/metrics"),
        ("host.example", "http://host.example:9400/metrics"),
    ],
)
def test_the_url_that_is_told(address, url):
    assert metrics_url(address, 9400) == url


@pytest.mark.parametrize("verb", ["serve", "port-forward"])
def test_an_address_that_is_empty_is_not_every_address(verb, capfd):
    assert cli.run(["metrics", verb, "--address", ""]) == ExitCode.USAGE
    assert "Invalid value for '--address': it is empty" in capfd.readouterr().err
