"""Receives deliveries of Vouchsafe: 401 to what is not genuine, 200 to the rest, and works on each event once.

VOUCHSAFE_WEBHOOK_SECRET=whsec_… python3 -B receive.py [PORT]      beside verify.py; Python 3.9 or later, nothing else
"""
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from verify import verify

SIGNED = ("webhook-id", "webhook-timestamp", "webhook-signature")
known = set()  # keep yours where the work is kept, in the same transaction


class Receiver(BaseHTTPRequestHandler):
    """Verifies, answers, and works afterwards."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        event_id, timestamp, signatures = (self.headers.get(name, "") for name in SIGNED)
        secret = os.environ["VOUCHSAFE_WEBHOOK_SECRET"]
        genuine = timestamp.isdigit() and verify(secret, event_id, timestamp, signatures, body, time.time())
        self.send_response(200 if genuine else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if genuine and event_id not in known:
            known.add(event_id)
            # In one piece, since others print here, too.
            print(f"new: {json.loads(body)['event']} {event_id}\n", end="", flush=True)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9999
    ThreadingHTTPServer(("127.0.0.1", port), Receiver).serve_forever()
