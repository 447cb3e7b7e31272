"""Fuzzer hooks: each request carries a partner's signature or an operator's token."""

import functools
import os

import requests
import requests.auth
import schemathesis

from signing import Credentials


# The longest overlap of a credential with its successor.
LONGEST_OVERLAP_S = 604_800

UNKNOWN_TOKEN_ID = "otk_01900000000070008000000000000000"

# Sandbox faults that the fuzzer would report as faults of the service.
HTTP_FAULTS = ("SERVICE_UNAVAILABLE", "LOST_RESPONSE", "SLOW_RESPONSE")


class Signature(requests.auth.AuthBase):
    """Signs the request body as sent."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        body = request.body or b""
        if isinstance(body, str):
            body = body.encode()
        path = request.path_url.split("?")[0]
        request.headers.update(self.credentials.headers(request.method, path, body))
        return request


class Token(requests.auth.AuthBase):
    """Sends the operator's bearer token."""

    def __init__(self, token: str) -> None:
        self.token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self.token}"
        return request


@schemathesis.serializer("application/x-ndjson")
def text(_context, value) -> bytes:
    """Serializes generated lines as text."""
    return str(value).encode()


@functools.cache
def own_tokens() -> frozenset:
    """IDs of the tokens of the account whose token the fuzzer sends."""
    url = f"{os.environ['ADMIN_URL']}/admin/v1/operators/admin/tokens"
    response = requests.get(url, auth=Token(os.environ["OPERATOR_TOKEN"]), timeout=40)
    response.raise_for_status()
    return frozenset(token["token_id"] for token in response.json()["data"])


@schemathesis.hook
def before_call(_context, case, _kwargs) -> None:
    """Keeps the requests valid that follow: a rotation gets the longest overlap, no fault breaks orders, and the fuzzer does not revoke its
    own token."""
    if case.operation.label == "DELETE /admin/v1/operator-tokens/{token_id}":
        if case.path_parameters.get("token_id") in own_tokens():
            case.path_parameters["token_id"] = UNKNOWN_TOKEN_ID
        return
    if case.operation.label == "POST /sandbox/faults" and isinstance(case.body, dict):
        if case.body.get("fault") in HTTP_FAULTS:
            case.body["fault"] = "VENDOR_TIMEOUT"
        return
    if case.operation.label != "POST /credentials/rotate" or not isinstance(case.body, dict):
        return
    overlap = case.body.get("overlap_seconds")
    if type(overlap) is int and 0 <= overlap < LONGEST_OVERLAP_S:
        case.body["overlap_seconds"] = LONGEST_OVERLAP_S


if os.environ["FUZZED_LISTENER"] == "operator":
    schemathesis.auth.set_from_requests(Token(os.environ["OPERATOR_TOKEN"]))
else:
    schemathesis.auth.set_from_requests(Signature(Credentials.from_environment()))
