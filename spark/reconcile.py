"""What spark-submit is given: the options of `msmq-bridge reconcile`, on the cluster's Spark."""

import sys

from bridge.cli.app import main

if __name__ == "__main__":
    sys.exit(main(["reconcile", *sys.argv[1:]]))
