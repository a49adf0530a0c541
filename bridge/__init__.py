"""An MSMQ queue manager on Linux whose messages are Kafka records."""
