"""The Spark jobs: the same code on `local[*]` and on a cluster."""
