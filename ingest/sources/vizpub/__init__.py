"""Report directories of the VizPub tool of 2014."""
