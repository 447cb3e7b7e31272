"""Verifies a Vouchsafe webhook delivery: exits with 0 if it is authentic and recent. Python 3.9 or later, nothing else.

VOUCHSAFE_WEBHOOK_SECRET=whsec_… python3 verify.py WEBHOOK_ID WEBHOOK_TIMESTAMP WEBHOOK_SIGNATURE [NOW] < body
"""
import base64
import hashlib
import hmac
import os
import sys
import time


def verify(secret: str, webhook_id: str, timestamp: str, signatures: str, body: bytes, now: float) -> bool:
    """Returns whether one of the signatures is valid. The body is the raw bytes."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, f"{webhook_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(mac)
    fresh = abs(now - int(timestamp)) <= 300
    return fresh and any(hmac.compare_digest(expected, one.encode()) for one in signatures.split())


if __name__ == "__main__":
    now = float(sys.argv[4]) if len(sys.argv) > 4 else time.time()
    secret = os.environ["VOUCHSAFE_WEBHOOK_SECRET"]
    if not verify(secret, *sys.argv[1:4], sys.stdin.buffer.read(), now):
        sys.exit("the signature is wrong or the timestamp is not within 300 seconds of now")
