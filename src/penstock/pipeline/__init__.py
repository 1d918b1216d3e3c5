"""Where data comes from: Spark jobs."""
