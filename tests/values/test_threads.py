"""Tiles are multiplied by one thread, where the library that says so is installed."""

import sys
from contextlib import nullcontext
from types import ModuleType

import pytest

from spmilp.checker.values.replay import one_blas_thread


def test_the_blas_is_limited_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def threadpool_limits(limits: int, user_api: str) -> nullcontext[None]:
        asked.append((limits, user_api))
        return nullcontext()

    fake = ModuleType("threadpoolctl")
    vars(fake)["threadpool_limits"] = threadpool_limits
    monkeypatch.setitem(sys.modules, "threadpoolctl", fake)
    with one_blas_thread():
        assert asked == [(1, "blas")]


def test_a_replay_does_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with one_blas_thread():
        assert sys.modules["threadpoolctl"] is None
