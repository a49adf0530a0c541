"""What a remote reader may ask for, and how he is answered: decisions, no waiting. MS-MQRR, MS-MQQP

The queues themselves are in `bridge.core.retained`. Here is what the protocols add: names, rights,
actions, handles that cannot be guessed, and packets.
"""
