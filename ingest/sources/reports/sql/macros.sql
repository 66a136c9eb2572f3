-- What the texts of reports use.

-- A sum; null beyond 64 bits.
CREATE MACRO whole_number(value) AS try_cast(value AS BIGINT);

-- What a total had counted before, by its last value; one that dropped was restarted.
CREATE MACRO before(last, total) AS CASE WHEN last <= total THEN last ELSE 0 END;

CREATE MACRO contradict(counted, listed) AS coalesce(counted <> listed, false);

-- A counter, or what the list says; but a list whose messages or bytes differ from those that are counted tells
-- nothing of the other.
CREATE MACRO complete(counted, listed, of_other, listed_other) AS
    coalesce(counted, CASE WHEN NOT contradict(of_other, listed_other) THEN listed END);

CREATE MACRO bit_of(is_set, place) AS is_set::INTEGER << place;
