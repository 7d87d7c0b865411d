"""Many evaluations: paths to single values, sweeps and sensitivity."""
