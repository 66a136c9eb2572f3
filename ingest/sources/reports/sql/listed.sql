-- Publication traffic by the lists of new reports; null where an entry lacks a value, and beyond 64 bits.
--
-- whole: reports, copies_sent, copies_received
-- makes: listed
SELECT
    row,
    CASE WHEN sent = [] THEN 0 ELSE s.messages END AS messages_sent,
    len(received) AS messages_received,
    CASE WHEN sent = [] THEN 0 ELSE whole_number(s.bytes) END AS bytes_sent,
    CASE WHEN received = [] THEN 0 ELSE whole_number(r.bytes) END AS bytes_received
FROM reports
LEFT JOIN (
    SELECT
        row,
        CASE WHEN bool_and("to" IS NOT NULL) THEN sum(len("to")) END AS messages,
        CASE WHEN bool_and("to" IS NOT NULL AND bytes IS NOT NULL) THEN sum(bytes::HUGEINT * len("to")) END AS bytes
    FROM copies_sent
    GROUP BY row
) s USING (row)
LEFT JOIN (
    SELECT row, CASE WHEN bool_and(bytes IS NOT NULL) THEN sum(bytes) END AS bytes
    FROM copies_received
    GROUP BY row
) r USING (row)
WHERE is_new
