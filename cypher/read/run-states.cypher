// How the runs stand that there are.
//
// -> name: the run
// -> state: loading, complete or removing
// -> tables: which tables it was made from, null = unknown
MATCH (r:Run)
RETURN r.name AS name, r.state AS state, r.tables AS tables
