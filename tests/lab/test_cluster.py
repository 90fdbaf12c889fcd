"""A Dask cluster: most of it inside this process, so that only the processes that compute have to start."""

import datetime
import gc
import ipaddress
import json
import time
from concurrent.futures import CancelledError

import dask.config
import distributed
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from genscope.lab import Cluster, Store, run, select
from genscope.lab.execution import cluster, protocol
from tests.lab import hazards, toys

HERE = {
    "n_workers": 1,
    "threads_per_worker": 2,
    "processes": False,
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
}
SECRET = "a password"


@pytest.fixture(autouse=True)
def refused_clients_end_here():
    """Dask ends a client that was refused when it is collected, and waits for ever if that is while another starts."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def address():
    """A scheduler with one Dask worker of two threads; afterwards the processes that computed are ended."""
    with distributed.LocalCluster(**HERE, protocol="tcp") as local:
        yield local.scheduler_address  # pyright: ignore[reportAttributeAccessIssue]  # not asynchronous
    for worker in cluster._idle:
        worker.close()
        worker.wait_for_end()
    cluster._idle.clear()


@pytest.fixture
def store(tmp_path):
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        yield store


@pytest.mark.parametrize("study", [toys.search, toys.stacked], ids=lambda study: study.name)
def test_a_cluster_computes_what_threads_compute(study, address, store, tmp_path):
    def rows(store):
        return store.frame(study.name).drop("seconds", "compile_seconds", "finished", "provenance")

    with Store(f"sqlite:///{tmp_path}/here.db") as here, Cluster(address) as pool:
        assert pool.slots() == pool.threads() == 2
        run(study, store=here)
        assert run(study, store=store, pool=pool).failed == 0
        assert rows(store).equals(rows(here))


def test_what_goes_wrong_is_stored_and_the_study_goes_on(address, store):
    with Cluster(address, time_limit=5.0) as pool:
        summary = run(hazards.study, select(hazards.study, seed=0), store=store, pool=pool)
    assert (summary.computed, summary.failed) == (5, 3)
    frame = store.frame("hazards")
    assert frame["kind"].to_list() == ["diverges", "fills", "good", "hangs", "raises"]
    assert frame["status"].to_list() == ["ok", "failed", "ok", "failed", "failed"]
    assert "took longer than 5 s" in frame["error"][3]


def test_a_worker_with_another_genscope_refuses(address, store, monkeypatch):
    monkeypatch.setattr(protocol, "VERSION", "0.0.1")
    with Cluster(address) as pool, pytest.raises(ValueError, match="Install the same version on every machine"):
        run(toys.fixed, store=store, pool=pool)
    assert store.done("toy-fixed") == set()


def answer_soon(order, time_limit):
    time.sleep(0.02)
    return json.dumps({"provenance": {}, "results": [protocol.failure("none")]})


def test_clients_that_end_while_answers_come_keep_no_others_waiting(address, monkeypatch):
    monkeypatch.setattr(cluster, "compute", answer_soon)
    batch = toys.fixed.trials({"size": 1, "kind": "a"}, range(1))
    for round in range(40):  # with callbacks on Dask's shared thread, one in thirty of these kept it for ever
        with Cluster(address) as pool:
            pool.open(toys.fixed)(batch)
            time.sleep(0.015 + 0.0005 * round)
    with Cluster(address) as pool:
        [record] = pool.open(toys.fixed)(batch).result(timeout=30)
    assert record.error == "none"


# Encrypted and authenticated


def certificate(directory, name, issuer=None):
    """A certificate and its key, as files; signed by itself, or by another such."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    today = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = directory / f"{name}.cert", directory / f"{name}.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    return paths


def settings(cert, key):
    """Dask's own settings, as a user has them in a file or in the environment."""
    tls = {
        f"{role}.{part}": str(path)
        for role in ("scheduler", "worker", "client")
        for part, path in zip(("cert", "key"), (cert, key), strict=True)
    }
    tls["ca-file"] = str(cert)
    return {f"distributed.comm.tls.{name}": value for name, value in tls.items()}


def test_a_cluster_behind_tls_serves_those_with_its_certificate(tmp_path, store, address):
    ours, others = certificate(tmp_path, "ours"), certificate(tmp_path, "others")
    with dask.config.set({"distributed.comm.timeouts.connect": "3s", **settings(*ours)}):
        security = distributed.Security(require_encryption=True)
        with distributed.LocalCluster(**HERE, protocol="tls", security=security) as local:
            guarded = local.scheduler_address  # pyright: ignore[reportAttributeAccessIssue]  # not asynchronous
            assert guarded.startswith("tls://127.0.0.1:")
            with Cluster(guarded) as pool:
                assert run(toys.fixed, select(toys.fixed, "quick"), store=store, pool=pool).computed == 2
            with dask.config.set(settings(*others)), pytest.raises(ValueError, match="no Dask scheduler answers"):
                Cluster(guarded)
            plain = guarded.replace("tls", "tcp")
            with pytest.raises(ValueError, match="Start `dask scheduler` there, or correct the address"):
                Cluster(plain)


# What is said when it does not work


def test_without_dask_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(ValueError, match=r"pip install '\.\[cluster\]'"):
        Cluster("tcp://127.0.0.1:8786")


@pytest.mark.parametrize("wrong", ["127.0.0.1:1", "nonsense://there", "tcp://127.0.0.1:words"])
def test_an_address_without_a_scheduler_is_refused(wrong):
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
        pytest.raises(ValueError, match="Start `dask"),
    ):
        Cluster(wrong)


@pytest.fixture
def pool(address):
    with Cluster(address) as pool:
        yield pool


def test_a_batch_that_fells_its_workers_has_failed(pool):
    batch = toys.fixed.trials({"size": 1, "kind": "a"}, range(2))
    felled = distributed.KilledWorker("task", type("State", (), {"address": "tcp://there"})(), 3)
    records = protocol.records(batch, pool._failed(felled, batch))
    assert [record.status for record in records] == ["failed"] * 2
    assert "4 different workers" in records[0].error


def test_a_scheduler_that_is_gone_ends_the_run_and_says_what_to_do(pool):
    with pytest.raises(ConnectionError, match=r"Every finished trial is stored: restart the scheduler .* again"):
        pool._failed(CancelledError("gone"), [])


def test_workers_without_genscope_are_told_apart(pool):
    with pytest.raises(ValueError, match=rf"genscope {protocol.VERSION}. Install these on every machine"):
        pool._failed(ModuleNotFoundError("No module named 'genscope'"), [])


def test_the_store_is_no_business_of_the_workers(pool, monkeypatch, tmp_path):
    sent = []
    submit = pool._client.submit
    monkeypatch.setattr(pool._client, "submit", lambda *task, **how: sent.append(task) or submit(*task, **how))
    with Store(f"sqlite:///{tmp_path}/{SECRET}.db") as store:
        run(toys.fixed, select(toys.fixed, "quick"), store=store, pool=pool)
    [(function, order, limit)] = sent
    assert function is cluster.compute
    assert limit is None
    assert isinstance(json.loads(order), dict)
    assert SECRET not in order
