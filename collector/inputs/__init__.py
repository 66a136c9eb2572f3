"""Where a collector takes reports from, beside HTTP: folders, targets, Kafka, growing traces."""
