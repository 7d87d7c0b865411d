"""What is said where an extra is not installed."""

import sys

import pytest

from hwmodel.errors import HwmodelError
from hwmodel.network import load_network


@pytest.mark.parametrize("package", ["onnx", "torch"])
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, package):
    import hwmodel

    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        HwmodelError, match=rf"needs the package {package}: pip install 'hwmodel\[{package}\]'"
    ):
        if package == "onnx":
            (tmp_path / "model.onnx").write_bytes(b"x")
            load_network(tmp_path / "model.onnx")
        else:
            hwmodel.from_torch(object(), ())
