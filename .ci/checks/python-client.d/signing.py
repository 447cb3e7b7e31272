"""Request signing for Python: the four headers of a signed request.

Used by the fuzzer and by the generated client.
"""

import hashlib
import hmac
import os
import time


class Credentials:
    """API key and secret."""

    def __init__(self, api_key: str, api_secret: str) -> None:
        self.api_key = api_key
        self.api_secret = api_secret

    @classmethod
    def from_environment(cls) -> "Credentials":
        return cls(os.environ["VOUCHSAFE_API_KEY"], os.environ["VOUCHSAFE_API_SECRET"])

    def headers(self, method: str, path: str, body: bytes) -> dict[str, str]:
        """Returns the headers of a request; `path` is the path of the request line, without a query."""
        timestamp = str(int(time.time()))
        message = f"{timestamp}{method}{path}".encode() + body
        signature = hmac.new(self.api_secret.encode(), message, hashlib.sha256).hexdigest()
        return {
            "X-API-Key": self.api_key,
            "X-API-Secret": self.api_secret,
            "X-Timestamp": timestamp,
            "X-Signature": f"t={timestamp},v1={signature}",
        }
