"""Verifies a delivery with the Standard Webhooks library, as a partner would."""
import json
import os
import sys

from standardwebhooks import Webhook

headers = json.loads(sys.argv[1])
print(Webhook(os.environ["SECRET"]).verify(sys.stdin.buffer.read(), headers)["event_id"])
