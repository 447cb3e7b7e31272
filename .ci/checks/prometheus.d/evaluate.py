"""Evaluates every expression of rules and dashboards against a Prometheus that scrapes the service, until each has a series, and
exemplars where a dashboard shows them."""

import json
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

DEADLINE_S = 45

repository, prometheus = Path(sys.argv[1]), sys.argv[2]

# Empty while nothing of the kind has happened, which the panels say.
EMPTY_WHEN_HEALTHY = {
    "vouchsafe_spans_dropped_total": "a program without the feature otlp exports no spans",
    "vouchsafe_stock_sku_low_vouchers": "no SKU of the sandbox is low",
}


def rules():
    """The left side of each alert, and the expression of each recording rule, as Prometheus has read them."""
    groups = get("/api/v1/rules")["groups"]
    runbooks = (repository / "docs/operations/runbooks.md").read_text()
    anchors = {line.strip("# \n").lower() for line in runbooks.splitlines() if line.startswith("## ")}
    tests = (repository / "deploy/prometheus/vouchsafe.tests.yml").read_text()
    for rule in (rule for group in groups for rule in group["rules"]):
        assert rule["health"] != "err", rule
        if rule["type"] == "recording":
            yield rule["name"], rule["query"]
            continue
        page, anchor = rule["annotations"]["runbook"].split("#")
        assert page == "docs/operations/runbooks.md" and anchor in anchors, f"{rule['name']} has no runbook"
        assert f"- name: {rule['name']}\n" in tests, f"{rule['name']} has no unit test"
        comparison = re.fullmatch(r"(.*) (==|>=|[<>]) [0-9.]+", rule["query"], re.DOTALL)
        assert comparison, f"{rule['name']} does not compare with a number: {rule['query']}"
        yield rule["name"], comparison[1]


def targets():
    for file in sorted((repository / "deploy/grafana").glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel["targets"]:
                expression = target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")
                yield f"{file.stem}: {panel['title']}", expression, target.get("exemplar", False)


def dashboards():
    return [(name, expression) for name, expression, _ in targets()]


def exemplars():
    return [(name, expression) for name, expression, has_exemplars in targets() if has_exemplars]


def get(path, **query):
    url = f"{prometheus}{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=5) as response:
        body = json.load(response)
    assert body["status"] == "success", body
    return body["data"]


def has_series(expression):
    samples = get("/api/v1/query", query=expression)["result"]
    return any(sample["value"][1] != "NaN" for sample in samples)


def has_exemplar(expression):
    found = get("/api/v1/query_exemplars", query=expression, start=time.time() - 3600, end=time.time())
    labels = [exemplar["labels"] for series in found for exemplar in series["exemplars"]]
    assert all(re.fullmatch("[0-9a-f]{32}", each["trace_id"]) for each in labels), labels
    return bool(labels)


def main():
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            # The rules are evaluated after they were read.
            expressions = [*rules(), *dashboards()]
            missing = [(name, e) for name, e in expressions if not has_series(e)]
            missing = [(name, e) for name, e in missing if not any(metric in e for metric in EMPTY_WHEN_HEALTHY)]
            assert exemplars()
            missing += [(f"{name}, exemplars", e) for name, e in exemplars() if not has_exemplar(e)]
        except OSError as error:
            expressions, missing = [], [("Prometheus", str(error))]
        if not missing:
            break
        if time.monotonic() > deadline:
            sys.exit("\n".join(f"no series: {name}: {expression}" for name, expression in missing))
        subprocess.run([Path(sys.argv[0]).with_name("traffic")], check=True)
    print(f"{len(expressions)} expressions of rules and dashboards have series, {len(exemplars())} of them exemplars")


main()
