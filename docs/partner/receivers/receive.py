"""Example webhook receiver: responds 401 to forged deliveries and 200 to others, and processes each event once.

VOUCHSAFE_WEBHOOK_SECRET=whsec_… python3 -B receive.py [PORT]      needs verify.py in the same directory; Python 3.9 or later
"""
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from verify import verify

SIGNED = ("webhook-id", "webhook-timestamp", "webhook-signature")
known = set()  # store yours in a database, in the transaction that processes the event


class Receiver(BaseHTTPRequestHandler):
    """Verifies, responds, then processes."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        event_id, timestamp, signatures = (self.headers.get(name, "") for name in SIGNED)
        secret = os.environ["VOUCHSAFE_WEBHOOK_SECRET"]
        authentic = timestamp.isdigit() and verify(secret, event_id, timestamp, signatures, body, time.time())
        self.send_response(200 if authentic else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if authentic and event_id not in known:
            known.add(event_id)
            # One write per line: requests are handled concurrently.
            print(f"new: {json.loads(body)['event']} {event_id}\n", end="", flush=True)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9999
    ThreadingHTTPServer(("127.0.0.1", port), Receiver).serve_forever()
