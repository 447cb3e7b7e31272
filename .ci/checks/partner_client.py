"""A partner's connection to the service, with signed requests."""

import contextlib
import hashlib
import hmac
import http.client
import time

# Of a client for a response; longer than a node waits for a commit.
RESPONSE_TIMEOUT_S = 20


class Client:
    """One connection, which is opened again after it has ended."""

    def __init__(self, address, credential, context=None):
        self.address, self.context = address, context
        self.key, self.secret = credential["api_key"], credential["api_secret"]
        self.connection = None

    def connect(self):
        if self.context is None:
            return http.client.HTTPConnection(*self.address, timeout=RESPONSE_TIMEOUT_S)
        return http.client.HTTPSConnection(*self.address, timeout=RESPONSE_TIMEOUT_S, context=self.context)

    def send(self, method, path, body=b"", key=None):
        """The status and the body of a response; None for a connection that has ended."""
        path = f"/api/v1{path}"
        timestamp = str(int(time.time()))
        message = (timestamp + method + path).encode() + body
        signature = hmac.new(self.secret.encode(), message, hashlib.sha256).hexdigest()
        headers = {
            "X-API-Key": self.key,
            "X-API-Secret": self.secret,
            "X-Timestamp": timestamp,
            "X-Signature": f"t={timestamp},v1={signature}",
        }
        if body:
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        try:
            if self.connection is None:
                self.connection = self.connect()
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            with contextlib.suppress(OSError):
                self.connection.close()
            self.connection = None
            return None
