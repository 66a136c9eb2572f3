-- The messages of the run that the input names again.
--
-- whole: folded/names, before/publications
-- makes: staged/named_again
SELECT message, name FROM before.publications
WHERE name IN (SELECT name FROM folded.names WHERE kind = 'message')
