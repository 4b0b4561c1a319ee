"""From an HTTP answer or an exception of the network to the error that says it in kubectl's words. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

from kubectl_ghost.cluster import errors, permissions
from kubectl_ghost.domain.keys import Json

_BY_REASON: Final[dict[str, type[errors.ApiError]]] = {
    "AlreadyExists": errors.AlreadyExists,
    "Conflict": errors.Conflict,
    "Expired": errors.Gone,
    "Gone": errors.Gone,
    "Forbidden": errors.Forbidden,
    "Invalid": errors.Invalid,
    "NotFound": errors.NotFound,
    "TooManyRequests": errors.TooManyRequests,
    "Unauthorized": errors.Unauthorized,
}
_BY_STATUS: Final[dict[int, type[errors.ApiError]]] = {
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Gone,
    422: errors.Invalid,
    429: errors.TooManyRequests,
}
_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_MAX_TEXT: Final = 300
"""Of an answer that is not a Status object (a proxy's HTML page): as much as a line bears."""


def from_answer(status: int, body: bytes, method: str, path: str) -> errors.ApiError:
    """The error for an answer of 400 or more."""
    return from_status(_as_status(status, body), method, path)


def from_status(answer: Json, method: str, path: str) -> errors.ApiError:
    """The error that a Status object means, be it an answer's body or the object of a watch's ERROR event."""
    code = _code(answer, 500)
    details = _details(answer)
    reason = str(answer.get("reason") or _REASONS.get(code, ""))
    kind = _BY_REASON.get(reason) or _BY_STATUS.get(code)
    if kind is None:
        kind = errors.ApiError
        if code >= 500:
            kind = errors.ServerError
    if kind is errors.TooManyRequests and _is_budget(details):
        kind = errors.Blocked
    text = str(answer.get("message") or "unknown")
    hint = None
    if kind is errors.Forbidden:
        permission = permissions.missing(str(answer.get("message") or ""), method, path)
        if permission:
            hint = permission.hint()
    elif kind is errors.Unauthorized:
        hint = "the credentials of this context are not accepted: check it with `kubectl auth whoami`, or log in again"
    return kind(
        _sentence(kind, reason, text, details),
        hint,
        status=code,
        reason=reason,
        method=method,
        path=path,
        details=details,
    )


def _is_budget(details: Json) -> bool:
    return any(cause.get("reason") == "DisruptionBudget" for cause in details.get("causes") or ())


def _sentence(kind: type[errors.ApiError], reason: str, text: str, details: Json) -> str:
    if kind is errors.Unauthorized:
        return "You must be logged in to the server (Unauthorized)"
    if kind is errors.Invalid and details.get("causes"):
        return _invalid(details)
    if not reason:
        return f"Error from server: {text}"
    return f"Error from server ({reason}): {text}"


def _invalid(details: Json) -> str:
    start = f'The {details.get("kind", "object")} "{details.get("name", "")}" is invalid: '
    causes = [_cause(cause) for cause in details["causes"]]
    if len(causes) == 1:
        return start + causes[0]
    return start + "".join(f"\n* {cause}" for cause in causes)


def _cause(cause: Json) -> str:
    if not cause.get("field"):
        return str(cause.get("message", ""))
    return f"{cause['field']}: {cause.get('message', '')}"


def _code(answer: Json, otherwise: int) -> int:
    code = answer.get("code")
    if not isinstance(code, int):
        return otherwise
    return code or otherwise


def _details(answer: Json) -> Json:
    """The details as far as they are what they should be: aggregated API servers write these answers too."""
    details = answer.get("details")
    if not isinstance(details, dict):
        return {}
    causes = details.get("causes")
    if not isinstance(causes, list):
        causes = []
    return {**details, "causes": [cause for cause in causes if isinstance(cause, dict)]}


def _as_status(status: int, body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if isinstance(answer, dict) and answer.get("kind") == "Status":
        return {**answer, "code": _code(answer, status)}
    text = " ".join(body.decode("utf-8", "replace").split())[:_MAX_TEXT]
    if status == 404:
        text = "the server could not find the requested resource"
    return {"code": status, "message": text or f"the server answered with status {status} and no message"}
