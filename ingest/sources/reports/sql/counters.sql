-- The counters of reports, as reported.
--
-- whole: reports
-- makes: counters
SELECT
    row, peer, interval, is_new,
    control.sent.messages AS control_messages_sent,
    control.received.messages AS control_messages_received,
    control.sent.bytes AS control_bytes_sent,
    control.received.bytes AS control_bytes_received,
    publication.sent.messages AS publication_messages_sent,
    publication.received.messages AS publication_messages_received,
    publication.sent.bytes AS publication_bytes_sent,
    publication.received.bytes AS publication_bytes_received,
    duplicates, rpcs_sent, rpcs_received
FROM reports
