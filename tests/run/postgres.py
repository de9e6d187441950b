"""A PostgreSQL of the tests' own: its cluster in a temporary folder, on loopback."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.run import tools

_START_SECONDS = 30.0
_STOP_SECONDS = 20.0


class PostgresError(Exception):
    """The cluster could not be made or started; the text holds what it said."""


class Cluster:
    """Started by `start`, gone after `stop`, with everything it wrote."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self._folder = Path(tempfile.mkdtemp(prefix="ctxhealth-pg-"))
        self._password = secrets.token_hex(16)
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to run as root.
        self._user = "postgres" if os.geteuid() == 0 else None

    def url(self, database: str = "postgres") -> str:
        """The address of one of its databases, as DATABASE_URL wants it."""
        return f"postgres://ctxhealth:{self._password}@127.0.0.1:{self._port}/{database}"

    def start(self) -> None:
        """Make the cluster and wait until it answers; raises PostgresError."""
        try:
            self._initdb()
            self._launch()
        except BaseException:
            self.stop()
            raise

    def create_database(self) -> str:
        """A new, empty database; returns its url."""
        import psycopg

        name = f"t{secrets.token_hex(6)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url(name)

    def stop(self) -> None:
        """End the server and remove its folder."""
        if self._process is not None:
            # Asked to end at once: asked politely, it waits for its clients to leave.
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _initdb(self) -> None:
        password_file = self._folder / "password"
        password_file.write_text(self._password, encoding="ascii")
        if self._user:
            shutil.chown(self._folder, self._user)
            shutil.chown(password_file, self._user)
        command = [
            *(str(self._binaries / "initdb"), "-D", str(self._folder / "data")),
            *("-U", "ctxhealth", "-A", "scram-sha-256", f"--pwfile={password_file}"),
            *("-E", "UTF8", "--locale=C", "--no-sync"),
        ]
        result = subprocess.run(
            command, user=self._user, cwd=self._folder, capture_output=True, check=False
        )
        if result.returncode != 0:
            raise PostgresError(f"initdb failed: {result.stderr.decode(errors='replace')}")

    def _launch(self) -> None:
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": "",
            # The machine does not lose power during a test; commits keep their meaning.
            "fsync": "off",
            "full_page_writes": "off",
            "wal_level": "minimal",
            "max_wal_senders": "0",
            "max_connections": "60",
        }
        command = [str(self._binaries / "postgres"), "-D", str(self._folder / "data")]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        log = (self._folder / "log").open("wb")
        self._process = subprocess.Popen(
            command, user=self._user, cwd=self._folder, stdout=log, stderr=log
        )
        log.close()
        self._wait()

    def _wait(self) -> None:
        import psycopg

        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        log = (self._folder / "log").read_text(encoding="utf-8", errors="replace")
        raise PostgresError(f"PostgreSQL did not start: {log}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_cluster() -> Cluster | None:
    """A running cluster, or None where PostgreSQL is not installed."""
    binaries = tools.postgresql()
    if binaries is None:
        return None
    cluster = Cluster(binaries)
    cluster.start()
    return cluster
