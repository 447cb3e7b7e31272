#!/usr/bin/env python3
"""Upgrade and return of two nodes on one database, one after the other, under orders.

    rolling.py --old PROGRAM --new PROGRAM --url URL --service-url URL --directory DIRECTORY [--seconds S] [--json FILE]

`--url` is that of the owner of an empty database, `--service-url` that of the role that serves.

| Step | Node 1 | Node 2 |
|---|---|---|
| both serve | old | old |
| `migrate` of the new program | old | old |
| upgrade of node 1, then of node 2 | new | old, new |
| return of node 1, then of node 2 | old | new, old |
| upgrade of both | new | new |

Clients place orders, repeat them at the other node with the same key, read them, cancel some and read the codes of others. A request
that the node which restarts does not take goes to the other node; any other refusal fails the run. In the end every order is as its
client knows it, no code was given twice, and `vouchsafe verify` of both programs finds nothing wrong.
"""

import argparse
import json
import os
import pathlib
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from partner_client import Client  # noqa: E402

CLIENTS = 8
PARTNERS = 4
PRODUCT = "upgrade"
VOUCHERS = 60000
TOKEN = "a token of the rolling upgrade, 32 bytes"
START_TIMEOUT_S = 120
# A request is sent again until then.
REQUEST_TIMEOUT_S = 60


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Node:
    """A node that runs one program after the other."""

    def __init__(self, name, directory, environment):
        self.name, self.directory, self.environment = name, directory, environment
        self.address, self.admin = ("127.0.0.1", free_port()), f"http://127.0.0.1:{free_port()}"
        # From the signal to the readiness of the next program: a balancer sends its requests elsewhere.
        self.is_leaving = False

    def start(self, program):
        addresses = [f"--http-addr={self.address[0]}:{self.address[1]}", f"--admin-addr={self.admin.removeprefix('http://')}"]
        command = [program, "serve", "--data-dir", self.directory / self.name, *addresses]
        self.log = open(self.directory / f"{self.name}.log", "ab")
        self.process = subprocess.Popen(command, env=self.environment, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + START_TIMEOUT_S
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"{self.name} did not become ready:\n{self.tail()}")
            time.sleep(0.05)
        self.is_leaving = False

    def is_ready(self):
        try:
            return urllib.request.urlopen(f"{self.admin}/readyz", timeout=5).status == 200
        except OSError:
            return False

    def stop(self):
        self.is_leaving = True
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() == 0, f"{self.name} did not end well:\n{self.tail()}"

    def replace(self, program):
        """Returns how long the node was away. Seconds."""
        began = time.monotonic()
        self.stop()
        self.start(program)
        return time.monotonic() - began

    def tail(self):
        return (self.directory / f"{self.name}.log").read_text()[-4000:]


class Traffic:
    """Requests of several clients at both nodes, and what was answered."""

    def __init__(self, nodes, credentials):
        self.nodes, self.credentials = nodes, credentials
        self.lock = threading.Lock()
        # Order id: (partner, is_cancelled, voucher ids), as its client knows it.
        self.orders = {}
        self.requests = self.replays = self.drained = 0
        self.is_stopped = threading.Event()
        self.failures = []
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(CLIENTS)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.is_stopped.set()
        for thread in self.threads:
            thread.join()

    def check(self):
        if self.failures:
            raise self.failures[0]

    def run(self, number):
        try:
            # Seeded: every run has the same mix.
            self.shop(number % PARTNERS, random.Random(number))
        except Exception as failure:
            self.failures.append(failure)
            self.is_stopped.set()

    def shop(self, partner, chance):
        clients = [Client(node.address, self.credentials[partner]) for node in self.nodes]
        while not self.is_stopped.is_set():
            first = chance.randrange(2)
            key, quantity = secrets.token_hex(16), chance.randint(1, 3)
            body = json.dumps({"items": [{"product_id": PRODUCT, "denomination": 25, "quantity": quantity}]}).encode()
            placed = self.send(clients, first, (201,), "POST", "/orders", body, key)
            again = self.send(clients, 1 - first, (201,), "POST", "/orders", body, key)
            assert again == placed, f"a repeated order has another response: {placed} {again}"
            order = json.loads(placed)
            vouchers, is_cancelled = {voucher["voucher_id"] for voucher in order["vouchers"]}, False
            assert len(vouchers) == quantity, order
            path = f"/orders/{order['order_id']}"
            self.send(clients, chance.randrange(2), (200,), "GET", path)
            lot = chance.randrange(4)
            if lot == 0:
                cancelled = self.send(clients, chance.randrange(2), (200,), "POST", f"{path}/cancel", b"{}")
                is_cancelled = json.loads(cancelled)["status"] == "REFUNDED"
                assert is_cancelled, cancelled
            elif lot == 1:
                self.send(clients, chance.randrange(2), (200,), "GET", f"{path}/vouchers")
            with self.lock:
                self.orders[order["order_id"]] = (partner, is_cancelled, vouchers)
                self.replays += 1

    def send(self, clients, first, expected, *request):
        """The body of the response of one node, or of the other while that one restarts."""
        end = time.monotonic() + REQUEST_TIMEOUT_S
        turn = first
        while time.monotonic() < end:
            node = self.nodes[turn % 2]
            was_leaving = node.is_leaving
            response = clients[turn % 2].send(*request)
            if response is not None and response[0] in expected:
                with self.lock:
                    self.requests += 1
                return response[1]
            is_refused = response is None or response[0] == 503
            assert is_refused and (was_leaving or node.is_leaving), f"{node.name} refused {request[:2]}: {response}"
            with self.lock:
                self.drained += 1
            turn += 1
            # Both only if the other one is not back yet.
            time.sleep(0.01)
        raise AssertionError(f"no node took {request[:2]} for {REQUEST_TIMEOUT_S} s")


def check_orders(traffic, sql_orders):
    """Every acknowledged order is stored as its client knows it, no other one is, and no code was given to two of them."""
    known = {order: "REFUNDED" if is_cancelled else "DELIVERED" for order, (_, is_cancelled, _) in traffic.orders.items()}
    lost = [order for order in known if order not in sql_orders]
    assert not lost, f"{len(lost)} acknowledged orders are lost: {lost[:5]}"
    unknown = [order for order in sql_orders if order not in known]
    assert not unknown, f"{len(unknown)} orders were placed without an acknowledgement: {unknown[:5]}"
    different = [order for order in known if known[order] != sql_orders[order]]
    assert not different, f"{len(different)} orders have another status: {different[:5]}"
    codes = []
    clients = [Client(traffic.nodes[0].address, credential) for credential in traffic.credentials]
    for order, (partner, is_cancelled, vouchers) in traffic.orders.items():
        if not is_cancelled:
            status, body = clients[partner].send("GET", f"/orders/{order}/vouchers")
            assert status == 200, body
            found = json.loads(body)["data"]
            assert {voucher["voucher_id"] for voucher in found} == vouchers, f"{order} has other vouchers"
            codes += [voucher["credentials"][0]["value"] for voucher in found]
    assert len(codes) == len(set(codes)), "a code was given to two orders"
    return len(codes)


class Run:
    def __init__(self, options):
        self.options = options
        self.directory = pathlib.Path(options.directory)
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("VOUCHSAFE", "DATABASE_URL"))}
        limits = {f"VOUCHSAFE_LIMIT_{name}": "1000000/60" for name in ("ORDERS", "GENERAL", "AUTH", "VOUCHERS")}
        self.owner = plain | {"DATABASE_URL": options.url}
        self.environment = plain | limits | {
            "DATABASE_URL": options.service_url,
            "VOUCHSAFE_ENVIRONMENT": "production",
            "VOUCHSAFE_MASTER_KEY": "ab" * 32,
            "VOUCHSAFE_OPERATOR_TOKEN": TOKEN,
            "VOUCHSAFE_FOUR_EYES": "off",
        }
        self.nodes = [Node(name, self.directory, self.environment) for name in ("node-1", "node-2")]

    def command(self, program, *arguments, environment=None):
        command = [program, *map(str, arguments)]
        done = subprocess.run(command, env=environment or self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def operate(self, *arguments):
        return self.command(self.options.old, *arguments, "--admin-url", self.nodes[0].admin)

    def add_partners(self):
        product = ["product", "put", PRODUCT, "--name", PRODUCT, "--brand", PRODUCT, "--category", "retail", "--vendor", "own"]
        self.operate("vendor", "put", "own", "--adapter", "manual")
        self.operate("category", "put", "retail", "--name", "Retail")
        self.operate(*product, "--currency", "USD", "--denomination", "25")
        codes = self.directory / "codes.csv"
        codes.write_text("\n".join(["code", *(f"{secrets.token_hex(8)}-{number}" for number in range(VOUCHERS))]) + "\n")
        self.operate("stock", "import", codes, "--product", PRODUCT, "--denomination", "25", "--strict")
        credentials = []
        for number in range(PARTNERS):
            created = self.operate("partner", "create", "--name", f"Partner {number}", "--allow", "127.0.0.0/8", "--json")
            partner = json.loads(created)["partner_id"]
            since = "2026-01-01T00:00:00Z"
            self.operate("partner", "set", partner, "--certified-at", since, "--agreement-signed-at", since)
            self.operate("wallet", "top-up", partner, "USD", "9000000.00", "--reference", "the upgrade")
            credentials.append(json.loads(self.operate("credential", "issue", partner, "--json")))
            for node in self.nodes:
                client = Client(node.address, credentials[-1])
                # A node learns of a new credential within two seconds.
                while client.send("GET", "/wallets")[0] != 200:
                    time.sleep(0.1)
        return credentials

    def stored_orders(self):
        statement = "SELECT 'ord_' || replace(order_id::text, '-', '') || ' ' || status FROM orders"
        stored = self.command("psql", "--no-psqlrc", "--tuples-only", "--no-align", "--command", statement, self.options.url)
        return dict(line.split() for line in stored.splitlines())

    def run(self):
        old, new = self.options.old, self.options.new
        self.command(old, "migrate", environment=self.owner)
        for node in self.nodes:
            node.start(old)
        traffic = Traffic(self.nodes, self.add_partners())
        first, second = self.nodes
        steps = [
            ("old beside old", lambda: None),
            ("`migrate` of the new version", lambda: self.command(new, "migrate", environment=self.owner)),
            ("node 1 upgraded", lambda: first.replace(new)),
            ("node 2 upgraded", lambda: second.replace(new)),
            ("node 1 returned", lambda: first.replace(old)),
            ("node 2 returned", lambda: second.replace(old)),
            ("node 1 upgraded again", lambda: first.replace(new)),
            ("node 2 upgraded again", lambda: second.replace(new)),
        ]
        figures = []
        traffic.start()
        try:
            for step, change in steps:
                before = (len(traffic.orders), traffic.requests, traffic.drained)
                began = time.monotonic()
                change()
                changed = time.monotonic() - began
                time.sleep(self.options.seconds)
                traffic.check()
                after = (len(traffic.orders), traffic.requests, traffic.drained)
                orders, requests, drained = (now - then for now, then in zip(after, before))
                assert orders > 0, f"no order during: {step}"
                figures.append({"step": step, "seconds": round(changed, 1), "orders": orders, "requests": requests, "drained": drained})
                print("{step}: {seconds} s; {orders} orders, {requests} requests, {drained} sent to the other node".format(**figures[-1]), flush=True)
        finally:
            traffic.stop()
        traffic.check()
        codes = check_orders(traffic, self.stored_orders())
        for program in (new, old):
            self.command(program, "verify")
        cancelled = sum(is_cancelled for _, is_cancelled, _ in traffic.orders.values())
        print(f"{len(traffic.orders)} orders, {cancelled} of them cancelled, and {traffic.requests} requests: none refused, 0 lost; {codes} codes, none twice; verify of both is clean")
        if self.options.json:
            with open(self.options.json, "a") as lines:
                print(json.dumps(figures), file=lines)
        for node in self.nodes:
            node.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--old", "--new", "--url", "--service-url", "--directory"):
        parser.add_argument(name, required=True)
    parser.add_argument("--seconds", type=float, default=3, help="orders after each step")
    parser.add_argument("--json", help="file to which the run appends a line with its figures")
    run = Run(parser.parse_args())
    try:
        run.run()
    finally:
        for node in run.nodes:
            if getattr(node, "process", None) is not None and node.process.poll() is None:
                node.process.kill()
                node.process.wait()


if __name__ == "__main__":
    main()
