"""Refusals as problem JSON (RFC 9457): one sentence, and nothing of what was sent."""

from __future__ import annotations

import json
import math
from http import HTTPStatus

from retrasyn.service.web.replies import Headers, Reply

CONTENT_TYPE = "application/problem+json"
SENTENCES = {
    400: "The request cannot be read; see /openapi.json for what each address takes.",
    401: "The token, tag or device is not one this curator knows, or is no longer valid.",
    404: "There is nothing at this address; see /openapi.json for what there is.",
    405: "This address does not take this method; see /openapi.json for those it takes.",
    408: "The body came too slowly; send it within the deadline.",
    413: "The body is larger than this curator takes; send less at once.",
    422: "The request does not have the form that /openapi.json asks for.",
    429: "Requests come too fast from this address; wait as long as Retry-After says.",
    500: "Something went wrong here; nothing of the request was kept. The operator's log has more.",
    503: "The curator cannot take this now; wait as long as Retry-After says.",
}


class Problem(Exception):  # noqa: N818 - it becomes an answer
    """Ends a request with a refusal."""

    def __init__(
        self,
        status: int,
        detail: str | None = None,
        *,
        retry_after: float | None = None,
        headers: Headers = (),
    ) -> None:
        super().__init__(status, detail)
        self.status, self.detail, self.headers = status, detail, headers
        if retry_after is not None:
            seconds = max(1, math.ceil(retry_after))
            self.headers = (*headers, ("retry-after", str(seconds)))

    def reply(self) -> Reply:
        """Return the refusal as an answer."""
        return Reply(self.status, body_of(self.status, self.detail), CONTENT_TYPE, self.headers)


def body_of(status: int, detail: str | None = None) -> bytes:
    """Write a problem.

    >>> json.loads(body_of(404))["title"]
    'Not Found'
    """
    said = detail or SENTENCES.get(status) or SENTENCES[400]
    title = HTTPStatus(status).phrase
    return json.dumps(
        {"type": "about:blank", "title": title, "status": status, "detail": said}
    ).encode()
