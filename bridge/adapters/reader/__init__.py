"""Remote read of any MSMQ host: `sync` on plain sockets, `asyncio` in an event loop.

Neither needs the appliance: no Kafka, no HTTP server, no command line. Spark's executors import
`bridge.adapters.reader.sync_reader` and nothing else.
"""
