-- The traffic of new reports: their counters, and missing ones by their lists, where these are complete.
--
--   differs    a counter is not what the lists say
--   unlisted   what the list of arrivals lacks by the counters, as far as they tell
--
-- whole: counted, listed
-- makes: measured
SELECT
    row, peer, interval, control_messages_sent, control_messages_received, control_bytes_sent, control_bytes_received,
    complete(publication_messages_sent, messages_sent, publication_bytes_sent, bytes_sent)
        AS publication_messages_sent,
    complete(publication_messages_received, messages_received, publication_bytes_received, bytes_received)
        AS publication_messages_received,
    complete(publication_bytes_sent, bytes_sent, publication_messages_sent, messages_sent)
        AS publication_bytes_sent,
    complete(publication_bytes_received, bytes_received, publication_messages_received, messages_received)
        AS publication_bytes_received,
    duplicates, rpcs_sent, rpcs_received,
    contradict(publication_messages_sent, messages_sent)
        OR contradict(publication_messages_received, messages_received)
        OR contradict(publication_bytes_sent, bytes_sent)
        OR contradict(publication_bytes_received, bytes_received) AS differs,
    CASE
        WHEN messages_received IS NULL THEN NULL
        WHEN NOT contradict(publication_messages_received, messages_received)
        THEN CASE WHEN duplicates > messages_received THEN 'repeated arrivals' END
        WHEN CASE
            WHEN duplicates IS NULL THEN publication_messages_received > messages_received
            ELSE publication_messages_received = messages_received::HUGEINT + duplicates
        END
        THEN 'repeated arrivals'
        ELSE 'arrivals'
    END AS unlisted
FROM counted
JOIN listed USING (row)
WHERE is_new
