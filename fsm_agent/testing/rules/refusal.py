"""The answer with which the API refuses a request."""

from dataclasses import dataclass

from fsm_agent.testing.shapes import JsonObject

__all__ = ["ApiRefusal", "refuse"]


@dataclass(frozen=True, slots=True)
class ApiRefusal:
    """A refusal: which rule (its id, such as `R134`), and the status, type and text that the API answers with."""

    rule: str
    message: str
    status: int = 400
    type: str = "invalid_request_error"
    details: JsonObject | None = None
    """`error.details`, with an `error_code`, where the API gives them."""
    bare: bool = False
    """The body comes from the network in front of the API: no top-level `type`, no request id."""

    def body(self, request_id: str | None) -> JsonObject:
        """The JSON body of the answer.

        >>> ApiRefusal("R011", "messages: Field required").body("req_1")["error"]
        {'type': 'invalid_request_error', 'message': 'messages: Field required'}
        """
        error: JsonObject = {"type": self.type, "message": self.message}
        if self.details is not None:
            error["details"] = self.details
        return {"error": error} if self.bare else {"type": "error", "error": error, "request_id": request_id}

    def __str__(self) -> str:
        return f"{self.rule}: {self.status} {self.type}: {self.message}"


def refuse(rule: str, message: str) -> ApiRefusal:
    """A refusal of the usual kind: 400, `invalid_request_error`."""
    return ApiRefusal(rule, message)
