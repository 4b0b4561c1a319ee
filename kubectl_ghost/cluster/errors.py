"""What can go wrong between us and the API server, one class per thing a caller may want to catch.

Own classes and not the client library's, because there is no client library on the usual path and because the words
are kubectl's: who knows kubectl knows what to do. Causes are chained. Making an answer into one of these is
`failures.py`'s work.
"""

from __future__ import annotations

from typing import Any

from kubectl_ghost.domain.errors import GhostError
from kubectl_ghost.domain.keys import Json


class ApiError(GhostError):
    """The API server refused a request, or could not be asked.

    Attributes:
        status: the HTTP status, 0 when there was no answer.
        reason: the server's one word for it (`NotFound`), empty when there was no answer.
        details: `details` of the server's Status object: kind, name, causes.
    """

    bare = True
    """Printed without `error: ` in front, since the sentence says itself that it is one, as kubectl's do."""

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        status: int = 0,
        reason: str = "",
        method: str = "",
        path: str = "",
        details: Json | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        self.reason = reason
        self.method = method
        self.path = path
        self.details: dict[str, Any] = details or {}

    @property
    def namespace_is_terminating(self) -> bool:
        """Whether nothing can be made in a namespace, or evicted from it, since it is being deleted."""
        causes = self.details.get("causes") or ()
        return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


class NotFound(ApiError):
    """There is no such object, or the server does not know the type."""


class AlreadyExists(ApiError):
    """A create met an object of that name."""


class Conflict(ApiError):
    """The object changed since it was read, or another one has its name now: read again and redo."""


class Gone(ApiError):
    """A resource version or continue token that the server no longer remembers: list again."""


class Invalid(ApiError):
    """The server understood the object and does not accept it."""


class Unauthorized(ApiError):
    """The credentials are not accepted."""

    bare = False


class Forbidden(ApiError):
    """The user is known and may not do this; the hint names the permission that is missing."""


class TooManyRequests(ApiError):
    """The server still asks for patience after the retries of the transport."""


class Blocked(ApiError):
    """An eviction that a PodDisruptionBudget does not allow now. The answer is a 429, but the server is not busy.

    Attributes:
        budget: the budget's name, or the server's whole sentence where the name cannot be read off it.
        cause: the server's sentence about the budget.
    """

    @property
    def cause(self) -> str:
        """What the server says of the budget, without its final full stop."""
        causes = self.details.get("causes") or ()
        said = [str(cause.get("message", "")) for cause in causes if cause.get("reason") == "DisruptionBudget"]
        return "; ".join(filter(None, said)).removesuffix(".") or self.message

    @property
    def budget(self) -> str:
        """The word after "The disruption budget", with which the server begins its sentence."""
        start, _, rest = self.cause.partition("disruption budget ")
        return rest.split()[0] if start == "The " and rest.split() else self.cause


class ServerError(ApiError):
    """A status of 500 or more."""


class NotKubernetes(ApiError):
    """The server answered, and not as an API server does: a login page, a proxy, another program altogether."""

    bare = False

    def __init__(self, problem: str, server: str) -> None:
        super().__init__(
            f"the server's answer is {problem}: is {server} a Kubernetes API server?",
            "check the server of this context (`kubectl config view --minify`); a proxy or login page may be between",
        )


class Unreachable(ApiError):
    """There was no whole answer: refused, no such host, TLS, connection lost."""


class Timeout(Unreachable):
    """There was no answer in the time allowed."""
