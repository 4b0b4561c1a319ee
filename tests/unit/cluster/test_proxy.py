from urllib.parse import urlsplit

import pytest

from kubectl_ghost.cluster.proxy import Proxy, choose
from kubectl_ghost.domain.errors import GhostError

SERVER = "https://api.example.com:6443"


@pytest.mark.parametrize(
    ("server", "proxy_url", "environ", "expected"),
    [
        (SERVER, "", {}, None),
        (SERVER, "", {"HTTPS_PROXY": "http://p:3128"}, Proxy("p", 3128)),
        (SERVER, "", {"https_proxy": "p:3128"}, Proxy("p", 3128)),
        (SERVER, "", {"HTTP_PROXY": "http://p:3128"}, None),
        ("http://api", "", {"HTTP_PROXY": "http://p"}, Proxy("p", 80)),
        (SERVER, "http://u:p%40@q:1", {"HTTPS_PROXY": "http://p:3128"}, Proxy("q", 1, "Basic dTpwQA==")),
        ("https://127.0.0.1:1", "", {"HTTPS_PROXY": "http://p:3128"}, None),
        ("https://127.0.0.1:1", "http://q:1", {}, Proxy("q", 1)),
    ],
)
def test_choice(server, proxy_url, environ, expected):
    assert choose(urlsplit(server), proxy_url, environ) == expected


@pytest.mark.parametrize(
    ("server", "no_proxy", "direct"),
    [
        (SERVER, "example.com", True),
        (SERVER, ".example.com", True),
        (SERVER, "*.example.com", True),
        (SERVER, "other.com, API.example.com", True),
        (SERVER, "api.example.com:6443", True),
        (SERVER, "api.example.com:443", False),
        (SERVER, "ample.com", False),
        (SERVER, "*", True),
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://10.1.2.3", "11.0.0.0/8,nonsense/x", False),
        ("https://[fd00::1]", "fd00::1", True),
    ],
)
def test_exclusion(server, no_proxy, direct):
    chosen = choose(urlsplit(server), "", {"HTTPS_PROXY": "http://p", "NO_PROXY": no_proxy})
    assert (chosen is None) == direct


@pytest.mark.parametrize("url", ["http://p:bad", "http://p:99999", "http://[::1", "http://", "p:x"])
def test_a_proxy_that_is_no_url_is_named_with_its_place(url):
    with pytest.raises(GhostError, match=r'invalid URL ".*" in the cluster\'s proxy-url: '):
        choose(urlsplit(SERVER), url, {})
    with pytest.raises(GhostError, match=r'invalid URL ".*" in https_proxy: '):
        choose(urlsplit(SERVER), "", {"https_proxy": url})


def test_other_kinds_are_refused():
    with pytest.raises(GhostError, match='proxy URL scheme "socks5" is not supported'):
        choose(urlsplit(SERVER), "socks5://p:1080", {})
