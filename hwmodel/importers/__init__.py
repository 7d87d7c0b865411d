"""Networks from other tools' files and modules: ONNX and PyTorch.

Both importers walk a list of operators in order and add each to a `Graph`. The `Graph` decides
which layer an operator is and which shape it has, so that both give the same network.
"""
