"""The collector: reads input files and makes a run.

In: files of a source (`sources`), among them reports (the contract is vizpub.reports). Out: a run
in the run store (runstore). `pipeline.ingest` is the entry function; `stages.make` lists the
stages."""
