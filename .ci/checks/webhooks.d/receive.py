"""A receiver with the PyPI package standardwebhooks: prints event and order of each delivery that it accepts, refuses others.

WEBHOOK_SECRET=whsec_… python receive.py PORT
"""
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])


class Receiver(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204)
        self.end_headers()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = webhook.verify(body, {name.lower(): value for name, value in self.headers.items()})
            print(event["event"], event["data"]["order_id"], flush=True)
            self.send_response(204)
        except WebhookVerificationError as error:
            print(error, file=sys.stderr)
            self.send_response(400)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
