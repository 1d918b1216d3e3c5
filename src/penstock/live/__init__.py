"""A plant that is real: clusters, cgroups, Kafka, the meter."""
