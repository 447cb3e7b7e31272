#!/usr/bin/python3
"""Failovers of the cluster of deploy/ha under orders.

    rounds.py [--program FILE] [--rounds N] [--rate ORDERS_PER_SECOND] [--kinds ROUND...]

| Round | What happens to the machine of the primary |
|---|---|
| kill | SIGKILL of Postgres and its backends; Patroni and etcd live |
| cut | its network link is down, until another primary serves: connections stay open, and nothing arrives |
| switchover | `patronictl switchover` |
| machine | SIGKILL of etcd, Patroni, Postgres and the node of the service |

Three rounds are the first three; more go on in turn with all four. Clients order without a pause, and repeat an order with its key until
its outcome is definite. After each round every order that was acknowledged is in the database with its vouchers, no code was given to
two of them, and `vouchsafe verify` finds nothing wrong.
"""

import argparse
import concurrent.futures
import importlib.machinery
import importlib.util
import json
import math
import pathlib
import secrets
import signal
import ssl
import sys
import threading
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(REPOSITORY / ".ci/checks"))
from partner_client import Client  # noqa: E402

ROUNDS = ["kill", "cut", "switchover", "machine"]
# Clients at 40 orders per second; more at more, so that each has an eighth of a second for an order.
CLIENTS = 8
ORDERS_PER_CLIENT_S = 8
PARTNERS = 4
# Orders before and after an event.
CALM_S = 3
PRODUCT = "failover"
# A round sells no more than in this time without its event.
STOCK_OF_ROUND_S = 150
# Connections that read codes at once, and orders that one of them reads.
READERS = 16
READ_ORDERS = 200


def load_cluster():
    """The script deploy/ha/try, which has no suffix of a module."""
    path = str(REPOSITORY / "deploy/ha/try")
    loader = importlib.machinery.SourceFileLoader("ha", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("ha", loader))
    loader.exec_module(module)
    return module


ha = load_cluster()


def client_of(cluster, partner, address=(ha.PROXY, ha.PARTNER_PORT)):
    """A connection to HAProxy, or to a node."""
    return Client(address, partner["credential"], ssl.create_default_context(cafile=cluster.authority))


class Traffic:
    """Orders of several clients, and what was answered."""

    def __init__(self, cluster, partners, rate):
        self.cluster, self.partners = cluster, partners
        self.clients = max(CLIENTS, math.ceil(rate / ORDERS_PER_CLIENT_S))
        self.interval = self.clients / rate
        self.lock = threading.Lock()
        # Order id and its voucher ids, by partner.
        self.acknowledged = [{} for _ in partners]
        self.successes, self.decisions = [], []
        self.is_quarantined = threading.Event()
        self.is_stopped = threading.Event()
        self.is_aborted = False
        # What ended a thread.
        self.failures = []

    def __enter__(self):
        self.threads = [threading.Thread(target=self.run, args=(self.order, number)) for number in range(self.clients)]
        self.threads.append(threading.Thread(target=self.run, args=(self.release,)))
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, failure, *_):
        self.is_aborted = failure is not None
        self.is_stopped.set()
        for thread in self.threads:
            thread.join()
        if failure is None and self.failures:
            raise self.failures[0]

    def run(self, work, *arguments):
        try:
            work(*arguments)
        except Exception as failure:
            self.failures.append(failure)

    def order(self, number):
        number %= len(self.partners)
        client = client_of(self.cluster, self.partners[number])
        body = json.dumps({"items": [{"product_id": PRODUCT, "denomination": 25, "quantity": 1}]}).encode()
        # An order that has begun is repeated until its outcome is definite, also after the end of the round.
        while not self.is_stopped.is_set():
            key, began = secrets.token_hex(16), time.monotonic()
            while not self.is_definite(number, client.send("POST", "/orders", body, key)):
                if self.is_aborted:
                    return
                time.sleep(0.05)
            time.sleep(max(0, began + self.interval - time.monotonic()))

    def is_definite(self, number, response):
        if response is None:
            return False
        now = time.monotonic()
        status, body = response
        if status == 201:
            placed = json.loads(body)
            vouchers = [voucher["voucher_id"] for voucher in placed["vouchers"]]
            with self.lock:
                self.acknowledged[number][placed["order_id"]] = vouchers
                self.successes.append(now)
                self.decisions.append(now)
            return True
        if b"STOCK_QUARANTINED" in body:
            with self.lock:
                self.decisions.append(now)
            self.is_quarantined.set()
        # Such as that the first request with the key is still in progress.
        elif status < 500 and b'"retryable":true' not in body:
            raise AssertionError(f"an order was refused: {status} {body}")
        return False

    def release(self):
        """The operator, who knows that the promoted standby was synchronous."""
        while not self.is_stopped.is_set():
            if self.is_quarantined.wait(0.1):
                self.is_quarantined.clear()
                self.cluster.release_stock()

    def wait_for_successes(self, count):
        """Until as many orders were acknowledged from now on."""
        with self.lock:
            target = len(self.successes) + count
        ha.wait_for("orders", lambda: True if self.failures or len(self.successes) >= target else None)
        if self.failures:
            raise self.failures[0]


def longest_gap(times, since):
    """The longest time without one of these since then. The end of the round has orders, so that the gap ends."""
    times = [since, *(one for one in times if one >= since)]
    return max(after - before for before, after in zip(times, times[1:]))


def disturb(cluster, kind):
    """Returns what has to happen before the machine is one of three again."""
    if kind == "switchover":
        cluster.switch_over()
        return lambda: None
    machine = cluster.primary()
    if kind == "kill":
        machine.signal(signal.SIGKILL, roles=())
        return lambda: None
    if kind == "cut":
        machine.set_link("down")
        return lambda: machine.set_link("up")
    machine.signal(signal.SIGKILL, roles=("etcd", "patroni", "vouchsafe"))
    return machine.start_all


def check_orders(cluster, partners, acknowledged, earlier):
    """Every acknowledged order is there, no other one is, and each has its vouchers with codes that no other has. Returns the number of
    their vouchers, and adds them to those of the earlier rounds."""
    stored = set(cluster.sql("SELECT 'ord_' || replace(order_id::text, '-', '') FROM orders").split())
    lost = [order for orders in acknowledged for order in orders if order not in stored]
    assert not lost, f"{len(lost)} acknowledged orders are lost: {lost[:5]}"
    for orders in acknowledged:
        earlier.update(orders)
    unknown = stored - earlier.keys()
    assert not unknown, f"{len(unknown)} orders were placed without an acknowledgement: {list(unknown)[:5]}"
    vouchers = [voucher for ids in earlier.values() for voucher in ids]
    assert len(vouchers) == len(set(vouchers)), "a voucher was sold twice"

    def read(part):
        number, orders = part
        client, codes = client_of(cluster, partners[number]), []
        for order, ids in orders:

            def retrieve(order=order):
                response = client.send("GET", f"/orders/{order}/vouchers")
                # HAProxy says 502 for a connection that a node has ended.
                assert response is None or response[0] in (200, 502, 503), response
                return json.loads(response[1])["data"] if response is not None and response[0] == 200 else None

            found = ha.wait_for(f"the codes of {order}", retrieve)
            assert sorted(voucher["voucher_id"] for voucher in found) == sorted(ids), f"{order} has other vouchers"
            codes += [voucher["credentials"][0]["value"] for voucher in found]
        return codes

    parts = []
    for number, orders in enumerate(acknowledged):
        orders = list(orders.items())
        parts += [(number, orders[first : first + READ_ORDERS]) for first in range(0, len(orders), READ_ORDERS)]
    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        codes = [code for found in pool.map(read, parts) for code in found]
    assert len(codes) == len(set(codes)), "a code was given to two orders"
    return len(codes)


def add_stock(cluster, count):
    codes = cluster.home / "codes.csv"
    lines = (f"{secrets.token_hex(8)}-{number}" for number in range(count))
    codes.write_text("\n".join(["code", *lines]) + "\n")
    cluster.operate("stock", "import", codes, "--product", PRODUCT, "--denomination", "25", "--strict")


def add_partners(cluster):
    command = ["product", "put", PRODUCT, "--name", PRODUCT, "--brand", PRODUCT, "--category", "magic", "--currency", "USD"]
    cluster.operate(*command, "--denomination", "25")
    partners = []
    for number in range(PARTNERS):
        created = cluster.operate("partner", "create", "--name", f"Partner {number}", "--allow", f"{ha.NETWORK}.0/24", "--json")
        partners.append(json.loads(created.stdout))
        top_up = ["wallet", "top-up", partners[-1]["partner_id"], "USD", "9000000.00", "--reference", "the rounds"]
        cluster.operate(*top_up)
        for machine in cluster.machines:
            client = client_of(cluster, partners[-1], (machine.address, 8080))
            # A node learns of a new partner within two seconds.
            ha.wait_for("the partner to be known", lambda client=client: True if client.send("GET", "/wallets")[0] == 200 else None)
    return partners


def run_round(cluster, partners, kind, rate, earlier):
    # What earlier rounds have left over is not counted on.
    add_stock(cluster, math.ceil(rate * STOCK_OF_ROUND_S))
    with Traffic(cluster, partners, rate) as traffic:
        time.sleep(CALM_S)
        traffic.wait_for_successes(traffic.clients)
        before, began = cluster.primary(), time.monotonic()
        restore = disturb(cluster, kind)
        if kind != "switchover":
            ha.wait_for("another primary", lambda: True if cluster.primary() is not before else None)
        promoted = time.monotonic()
        traffic.wait_for_successes(traffic.clients)
        restore()
        cluster.wait_for_standbys(2)
        cluster.wait_for_nodes(3)
        traffic.wait_for_successes(traffic.clients)
        time.sleep(CALM_S)
        traffic.wait_for_successes(traffic.clients)
    count = check_orders(cluster, partners, traffic.acknowledged, earlier)
    cluster.verify()
    # Of a switchover the service sees the promotion before it ends.
    first = [min(time for time in times if time >= promoted) - promoted for times in (traffic.decisions, traffic.successes)]
    figures = {
        "round": kind,
        "orders": count,
        "promoted_s": round(promoted - began, 2),
        "first_decision_s": round(first[0], 2),
        "first_201_s": round(first[1], 2),
        "without_201_s": round(longest_gap(traffic.successes, began), 2),
    }
    cluster.report(
        "{round}: {orders} orders, 0 lost, no voucher twice; another primary after {promoted_s} s, from then to the first decision "
        "{first_decision_s} s, to the first 201 {first_201_s} s; {without_201_s} s without a 201".format(**figures)
    )
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=REPOSITORY / "target/debug/vouchsafe", help="the service")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=ROUNDS, help="only these rounds, in turn")
    parser.add_argument("--rate", type=float, default=40, help="orders per second of all clients")
    parser.add_argument("--json", help="file to which each round appends a line")
    options = parser.parse_args()
    kinds = options.kinds or (ROUNDS[:3] if options.rounds <= 3 else ROUNDS)
    limits = {f"VOUCHSAFE_LIMIT_{name}": "1000000/60" for name in ("ORDERS", "GENERAL", "AUTH", "VOUCHERS")}
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    try:
        cluster = ha.Cluster(options.program, limits)
    except ha.Unsuitable as unsuitable:
        print(f"rounds.py: {unsuitable}", file=sys.stderr)
        return 2
    try:
        cluster.up()
        partners = add_partners(cluster)
        # Order ids of the rounds so far, with their voucher ids.
        acknowledged = {}
        for number in range(options.rounds):
            figures = run_round(cluster, partners, kinds[number % len(kinds)], options.rate, acknowledged)
            if options.json:
                with open(options.json, "a") as lines:
                    print(json.dumps(figures), file=lines)
        return 0
    except BaseException:
        print(cluster.logs(), file=sys.stderr)
        raise
    finally:
        cluster.down()


if __name__ == "__main__":
    sys.exit(main())
