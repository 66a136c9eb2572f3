-- The peers that report, and when first.
--
-- whole: stays
-- makes: peers
SELECT peer AS name, min(interval) AS interval FROM stays GROUP BY peer
