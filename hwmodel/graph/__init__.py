"""Networks: layers, nodes, families, and the YAML they are written in."""
