-- What the texts of reports use.

-- A sum; null beyond 64 bits.
CREATE MACRO whole_number(value) AS try_cast(value AS BIGINT);

CREATE MACRO contradict(counted, listed) AS coalesce(counted <> listed, false);

-- A counter, or what the list says; but a list whose messages or bytes differ from those that are counted tells
-- nothing of the other.
CREATE MACRO complete(counted, listed, of_other, listed_other) AS
    coalesce(counted, CASE WHEN NOT contradict(of_other, listed_other) THEN listed END);

CREATE MACRO bit_of(is_set, place) AS is_set::INTEGER << place;
