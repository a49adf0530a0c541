"""Remote read from a program: look at a queue, then take its messages out. See README.md."""

from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.reader.place import Place
from bridge.adapters.reader.sync_reader import RemoteReader

QUEUE = "private$\\orders"

place = Place(host="127.0.0.1", port=2103, credentials=Credentials("ann", "secret"))
with RemoteReader(place) as reader:
    for read in reader.scan(QUEUE, limit=2):
        print("seen", read.message.label, read.message.body.decode())
    for batch in reader.receive(QUEUE):
        for read in batch.reads:
            print("taken", read.message.label)
        batch.confirm()  # they are safe with us: the queue may forget them
