"""Queues in mode `retain`: messages wait until a reader takes them. DM-17 to DM-31

What lasts is in rows (`rows`), one for each waiting message, in order on a shelf (`shelf`). They
are a view of Kafka: the record holds the message, and what became of it (`fates`) is committed to
Kafka before anybody is told. What may be lost is in memory: open queues, cursors, waiting readers,
locks, open transactions. A restart begins without them: what was locked is available again.

    arrive -> shelf -> reading -> Delivered -> answering -> Commit -> (Kafka) -> settle or restore
                          └─ waits -> Delivered or Ended, in the commands of a later call

Begin with `retained_queues.py`.
"""
