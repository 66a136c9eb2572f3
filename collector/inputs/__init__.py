"""The inputs of a collector beside HTTP: folders, targets, Kafka, growing traces."""
