"""Checks the audit trail of the day: who did what to the partner, and that changes of money name both operators.

python3 audit.py AUDIT.json
"""
import json
import sys

entries = json.load(open(sys.argv[1]))["data"]
done = {(entry["action"], entry["operator"]) for entry in entries}
expected = {
    ("partner.create", "ann"),
    ("partner.change", "ann"),
    ("credential.issue", "ann"),
    ("credential.revoke", "ann"),
    ("wallet.top_up", "ann"),
    ("request.create", "ann"),
    ("request.confirm", "ben"),
    ("request.decline", "ben"),
    ("order.approve", "ann"),
    ("order.reject", "ben"),
    ("order.cancel", "ben"),
    ("order.fulfil", "ann"),
    ("webhook.replay", "ben"),
    ("webhook.retry", "ben"),
    ("drift.resolve", "ben"),
    ("payout.read", "ann"),
    ("payout.pay", "ann"),
}
if missing := expected - done:
    sys.exit(f"missing in the audit trail: {sorted(missing)}")
own = [entry for entry in entries if entry["action"] == "request.confirm" and entry["after"]["requested_by"] != "ann"]
if own:
    sys.exit(f"a request does not name its requester: {own}")
