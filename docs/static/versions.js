// Versions of the site that lie beside this one; docs/versions.py writes them where it publishes.
const VERSIONS = [];
