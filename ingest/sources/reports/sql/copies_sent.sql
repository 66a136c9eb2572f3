-- What reports list as sent, a row for each message.
--
-- whole: reports
-- makes: copies_sent
SELECT row, peer, interval, unnest(sent, max_depth := 2) FROM reports WHERE is_new
