"""Signs a Vouchsafe request: prints the headers X-Timestamp and X-Signature.

VOUCHSAFE_API_SECRET=… python3 sign.py METHOD PATH [TIMESTAMP] < body
"""

import hashlib
import hmac
import os
import sys
import time


def sign(secret: str, timestamp: str, method: str, path: str, body: bytes) -> str:
    """The value of X-Signature. The path begins with /api/v1 and has no query; the body is the bytes that are sent."""
    message = (timestamp + method + path).encode() + body
    return f"t={timestamp},v1={hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()}"


if __name__ == "__main__":
    method, path, timestamp = (sys.argv[1:] + [str(int(time.time()))])[:3]
    signature = sign(os.environ["VOUCHSAFE_API_SECRET"], timestamp, method, path, sys.stdin.buffer.read())
    print(f"X-Timestamp: {timestamp}\nX-Signature: {signature}")
