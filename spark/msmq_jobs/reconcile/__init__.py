"""Did every message that was sent become a record, once and unaltered? Design 3.5"""
