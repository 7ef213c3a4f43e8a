"""Side by side with peers: each script writes a JSON into d2lmini/results/, of which the README makes a table."""
