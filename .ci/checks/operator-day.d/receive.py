"""A webhook receiver that refuses every event until the file `working` exists, then prints the id of each event.

python3 receive.py PORT
"""
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204)
        self.end_headers()

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_working = os.path.exists("working")
        if is_working:
            print(event["event_id"], flush=True)
        self.send_response(204 if is_working else 503)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
