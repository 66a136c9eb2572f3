// Ends the transaction that was begun under a name, if it is there still.
//
// $name string – what its metadata names it
//
// -> message: what the server says of it
SHOW TRANSACTIONS YIELD transactionId AS id, metaData AS data
WHERE data.vizpub = $name
TERMINATE TRANSACTIONS id YIELD message
RETURN message
