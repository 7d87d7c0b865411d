"""Networks from other tools' files and modules: ONNX and PyTorch.

Both importers walk a list of operators in order and tell a `Graph` what each one is; what an
operator costs, and which shape it has here, is decided there, so that both give the same network.
"""
