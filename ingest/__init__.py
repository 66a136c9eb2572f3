"""From input files to a run.

In: files of a source (`sources`), among them reports (the contract is vizpub.reports). Out: a run
in the run store (runstore). `pipeline.ingest` is the entry function; `stages.run_stages` has the
stages in order."""
