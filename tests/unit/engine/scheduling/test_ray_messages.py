"""What a user reads where a cluster cannot judge; a scripted Ray answers."""

import sys
from types import SimpleNamespace

import pytest

from kerneltruth.engine.scheduling.ray_cluster import Placement, RayCluster
from kerneltruth.errors import EnvironmentFault, UserError

START = "start one with `ray start --head`, or use --executor local"


def refuses(**options):
    raise ConnectionError("no GCS there\nsecond line")


def node(**resources):
    return {"Alive": True, "Resources": resources}


def run(monkeypatch, *, address=None, init=lambda **options: None, nodes=(), gpus=0.0):
    scripted = SimpleNamespace(
        is_initialized=lambda: False, init=init, nodes=lambda: nodes, shutdown=lambda: None
    )
    monkeypatch.setitem(sys.modules, "ray", scripted)
    cluster = RayCluster(
        make=lambda: None, address=address, judges=None, placement=Placement(gpus=gpus)
    )
    list(cluster.run([]))


@pytest.mark.parametrize(
    ("address", "shown", "reason"),
    [
        ("ray://127.0.0.1:1", "ray://127.0.0.1:1", "connection refused or timed out"),
        ("auto", "auto", "no GCS there"),
        (None, "local", "no GCS there"),
    ],
)
def test_no_cluster_at_the_address_is_one_line_with_the_next_step(
    address, shown, reason, monkeypatch
):
    with pytest.raises(UserError) as caught:
        run(monkeypatch, address=address, init=refuses)
    said = f"--address {shown}: no Ray cluster answers there: {reason}; {START}"
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("nodes", "gpus"), [((), 0.0), ((node(CPU=0.5),), 0.0), ((node(CPU=8, GPU=0),), 1.0)]
)
def test_a_cluster_without_room_names_what_one_judge_takes(nodes, gpus, monkeypatch):
    with pytest.raises(EnvironmentFault) as caught:
        run(monkeypatch, nodes=nodes, gpus=gpus)
    assert str(caught.value) == (
        f"no node of the Ray cluster has 1 CPUs and {gpus:g} GPUs; add one, or use another --device"
    )


def test_a_machine_without_ray_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    cluster = RayCluster(make=lambda: None, address=None, judges=None, placement=Placement())
    with pytest.raises(UserError, match=r"pip install 'kerneltruth\[ray\]', or use --executor"):
        list(cluster.run([]))
