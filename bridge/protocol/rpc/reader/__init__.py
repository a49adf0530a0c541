"""The reading side of MS-MQRR: what to ask a server, and what its answers mean.

Pure. A job is a generator, a `Flow`: it yields what it wants of the outside (`Ask`: calls to make,
all in flight at once; `Batch`: messages for whoever reads) and is sent the answers. A shell with a
connection runs it. A job that may go on after a lost connection (`Scan`, `Drain`) keeps what it
has reached, and makes a new flow for the next connection.
"""
