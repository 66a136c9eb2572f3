-- The peers whose periods the task joins: all; those of its part of the input; or those of no part.
--
-- whole: peers, folded/names
-- makes: mine
SELECT peer FROM peers
WHERE getvariable('part') = 'all' OR (getvariable('part') = 'some') = (name IN (
    SELECT name FROM folded.names WHERE kind = 'peer' AND "column" IN ('name', 'peer', 'src')
))
