#!/usr/bin/python3
"""Restore of the cluster of deploy/ha to a moment, by the steps of docs/operations/high-availability.md.

    restore.py [--program FILE]

Orders are placed before and after a moment, and the cluster is restored to it. The earlier orders are there, the later ones are not; their
vouchers are out of sale, because the data directory of a standby, which was kept, shows that they were sold.
"""

import argparse
import importlib.machinery
import importlib.util
import json
import pathlib
import shutil
import signal
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
LOST_PORT = 5433
SOLD = """COPY (
    SELECT s.code_id, 'vch_' || replace(a.voucher_id::text, '-', '') AS voucher_id
      FROM allocations AS a JOIN stock AS s USING (stock_id)
     WHERE a.order_id IS NOT NULL AND a.returned_at IS NULL) TO STDOUT (FORMAT csv, HEADER)"""


def load_cluster():
    """The script deploy/ha/try, which has no suffix of a module."""
    loader = importlib.machinery.SourceFileLoader("ha", str(REPOSITORY / "deploy/ha/try"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("ha", loader))
    loader.exec_module(module)
    return module


ha = load_cluster()


class Repository:
    """Backups of the cluster, which all machines reach."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.path = cluster.home / "repository"
        self.path.mkdir()
        shutil.chown(self.path, cluster.account.pw_uid, cluster.account.pw_gid)

    def file(self, machine):
        return machine.home / "pgbackrest.conf"

    def configure(self, machine):
        text = (REPOSITORY / "deploy/postgres/pgbackrest.conf").read_text()
        values = {"/var/lib/pgbackrest": self.path, "@REPOSITORY_PASSWORD@": self.cluster.password}
        values["/var/lib/postgresql/15/main"] = f"{machine.home}/postgres\npg1-socket-path={machine.home}"
        for value, replacement in values.items():
            text = text.replace(value, str(replacement))
        text = text.replace("[global]", f"[global]\nlog-path={machine.home}\nlock-path={machine.home}")
        self.file(machine).write_text(text)
        shutil.chown(self.file(machine), self.cluster.account.pw_uid, self.cluster.account.pw_gid)

    def run(self, machine, *command):
        self.cluster.run(self.cluster.as_account(["pgbackrest", f"--config={self.file(machine)}", "--stanza=vouchsafe", *command]))

    def begin(self):
        """Archives the WAL of the primary from now on, and makes a first backup."""
        cluster, primary = self.cluster, self.cluster.primary()
        for machine in cluster.machines:
            self.configure(machine)
            # The same command on each machine, as the settings in etcd are those of all.
            (machine.home / "pgbackrest-push").write_text(f"#!/bin/sh\nexec pgbackrest --config={self.file(machine)} --stanza=vouchsafe archive-push $1\n")
            (machine.home / "pgbackrest-push").chmod(0o755)
        parameters = {"archive_mode": "'on'", "archive_timeout": "60", "archive_command": "../pgbackrest-push %p"}
        settings = [part for name, value in parameters.items() for part in ("--set", f"postgresql.parameters.{name}={value}")]
        command = ["patronictl", "--config-file", primary.patroni_file]
        cluster.run([*command, "edit-config", "--force", "--quiet", *settings])
        ha.wait_for("the pending restart", lambda: (cluster.ask(primary, "/patroni") or {}).get("pending_restart"))
        cluster.run([*command, "restart", "--force", "vouchsafe"])
        cluster.wait_for_standbys(2)
        primary = cluster.primary()
        self.run(primary, "stanza-create")
        self.run(primary, "check")
        self.run(primary, "--type=full", "backup")


def order(cluster):
    """An order that is filled from stock; its id and its codes."""
    body = '{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}'

    def place():
        done = cluster.call("POST", "/orders", body)
        return json.loads(done.stdout) if done.returncode == 0 else None

    order_id = ha.wait_for("an order", place)["order_id"]
    return order_id, codes_of(cluster, order_id)


def codes_of(cluster, order_id):
    """None if there is no such order."""
    done = cluster.call("GET", f"/orders/{order_id}/vouchers")
    if "ORDER_NOT_FOUND" in done.stdout + done.stderr:
        return None
    assert done.returncode == 0, done.stdout + done.stderr
    return [voucher["credentials"][0]["value"] for voucher in json.loads(done.stdout)["data"]]


def restore(cluster, repository, moment):
    """The steps of the page; returns the data directory that was kept."""
    primary, kept = cluster.primary(), cluster.synchronous_standby()
    for machine in cluster.machines:
        ha.stop(machine.processes["vouchsafe"], signal.SIGTERM)
    for machine in sorted(cluster.machines, key=lambda machine: machine is primary):
        ha.stop(machine.processes["patroni"], signal.SIGTERM)
        assert machine.postmaster() is None, f"Postgres of {machine.name} has not ended"
    lost = kept.home / "lost"
    (kept.home / "postgres").rename(lost)
    for machine in cluster.machines:
        if machine is not primary and machine is not kept:
            shutil.rmtree(machine.home / "postgres")
    removal = subprocess.run(
        ["patronictl", "--config-file", primary.patroni_file, "remove", "vouchsafe"],
        input="vouchsafe\nYes I am aware\n",
        capture_output=True,
        text=True,
        env=cluster.environment(),
    )
    assert removal.returncode == 0, removal.stdout + removal.stderr
    directories = {"PGDATA": f"{primary.home}/postgres", "PGPROGRAMS": str(cluster.postgres_programs)}
    command = cluster.as_account([REPOSITORY / "deploy/ha/restore", moment])
    done = cluster.run(command, PGBACKREST_CONFIG=str(repository.file(primary)), **directories)
    cluster.report(done.stdout.strip())
    primary.start("patroni")
    assert cluster.primary() is primary
    for machine in cluster.machines:
        if machine is not primary:
            machine.start("patroni")
    cluster.wait_for_standbys(2)
    return kept, lost


def export_sold(cluster, machine, lost):
    """What was sold in the lost database, from a data directory that was kept."""
    # It was a standby, which serves reads without its primary.
    options = f"-c listen_addresses= -c archive_mode=off -c primary_conninfo= -c unix_socket_directories={machine.home} -p {LOST_PORT}"
    control = [cluster.postgres_programs / "pg_ctl", "--pgdata", lost, "--wait"]
    cluster.run(cluster.as_account([*control, "--log", machine.home / "lost.log", "--options", options, "start"]))
    connection = f"host={machine.home} port={LOST_PORT} user=postgres dbname=vouchsafe"
    psql = [cluster.postgres_programs / "psql", "--no-psqlrc", "--quiet", "--dbname", connection, "--command", SOLD]
    exported = cluster.run(cluster.as_account(psql)).stdout
    cluster.run(cluster.as_account([*control, "--mode", "fast", "stop"]))
    path = cluster.home / "sold.csv"
    path.write_text(exported)
    return path


def walk(cluster):
    repository = Repository(cluster)
    repository.begin()
    cluster.wait_for_nodes(3)
    earlier, codes = order(cluster)
    moment = cluster.sql("SELECT clock_timestamp()")
    later = [order(cluster) for _ in range(3)]
    # Waits until the WAL of now is archived.
    repository.run(cluster.primary(), "check")
    machine, lost = restore(cluster, repository, moment)
    settings = cluster.ask(cluster.primary(), "/config")
    assert settings["synchronous_mode_strict"] and cluster.sql("SHOW archive_mode") == "on", settings
    sold = export_sold(cluster, machine, lost)
    for other in cluster.machines:
        other.start("vouchsafe")
    cluster.wait_for_nodes(3)
    refused = cluster.call("POST", "/orders", '{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}')
    assert "STOCK_QUARANTINED" in refused.stdout + refused.stderr, refused.stdout + refused.stderr
    assert codes_of(cluster, earlier) == codes
    assert [codes_of(cluster, order_id) for order_id, _ in later] == [None] * len(later)
    released = cluster.operate("stock", "release", "--after-restore", "--sold", sold, "--reason", "compared with the lost database")
    cluster.report(released.stdout.strip())
    lost_codes = {code for _, codes in later for code in codes}
    again = [code for _ in range(5) for code in order(cluster)[1]]
    assert not lost_codes & set(again), "a code was sold twice"
    cluster.verify()
    cluster.report(f"restored to {moment}: the earlier order is there, the {len(later)} later ones are not, and none of their codes was sold again")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=REPOSITORY / "target/debug/vouchsafe", help="the service")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    try:
        cluster = ha.Cluster(options.program)
    except ha.Unsuitable as unsuitable:
        print(f"restore.py: {unsuitable}", file=sys.stderr)
        return 2
    try:
        cluster.up()
        walk(cluster)
        return 0
    except BaseException:
        print(cluster.logs(), file=sys.stderr)
        raise
    finally:
        cluster.down()


if __name__ == "__main__":
    sys.exit(main())
