// Delete relationships.
//
// $ids list<string> – their ids
MATCH ()-[r]->()
WHERE elementId(r) IN $ids
DELETE r
