"""DuckDB: SQL over all days at once. Of the metrics, SQL easily counts the degrees only."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from benchmarks.snapshots.given import NO_PATH, Given, run


def measure(given: Given) -> pa.Table:
    """The degrees of all present peers in each day."""
    days, rows = given.intervals, given.folder / "snapshots.parquet"
    return (
        duckdb.connect()
        .query(f"""
        WITH links AS (FROM '{rows}' WHERE interval IN {tuple(days)}),
        ends AS (
            SELECT interval, src AS peer, dst AS other, 0 AS i, 1 AS o FROM links
            UNION ALL SELECT interval, dst, src, 1, 0 FROM links),
        present AS (
            SELECT day AS interval, peer FROM '{given.folder}/presence.parquet',
            (SELECT unnest({list(days)}) AS day) WHERE valid_from <= day AND day < valid_to)
        SELECT interval, peer, coalesce(sum(i), 0) AS in_degree,
            coalesce(sum(o), 0) AS out_degree, count(DISTINCT other) AS degree
        FROM present LEFT JOIN ends USING (interval, peer) GROUP BY ALL
        """)
        .to_arrow_table()
    )


def answer_as_of(given: Given) -> pa.Table:
    """The links of a day, and the number of steps of a recursive query."""
    database, answers = duckdb.connect(), []
    database.execute(f"CREATE TABLE links AS FROM '{given.folder}/snapshots.parquet'")
    for day, src, dst in given.queries:
        asked = {"day": day, "src": src, "dst": dst}
        ((links,),) = database.execute(
            "SELECT count(*) FROM links WHERE interval = $day", {"day": day}
        ).fetchall()
        ((hops,),) = database.execute(
            """
            WITH RECURSIVE today AS (FROM links WHERE interval = $day),
            reached(peer, hops) USING KEY (peer) AS (
                SELECT $src::BIGINT, 0
                UNION SELECT dst, min(hops) + 1 FROM reached JOIN today ON src = peer
                WHERE dst NOT IN (SELECT peer FROM recurring.reached) GROUP BY dst)
            SELECT min(hops) FROM reached WHERE peer = $dst""",
            asked,
        ).fetchall()
        answers.append({"links": links, "hops": NO_PATH if hops is None else hops})
    return pa.Table.from_pylist(answers)


def reach(given: Given) -> pa.Table:
    """Earliest arrivals, day by day: those that are new on a day pass on from the next."""
    links = given.folder / "snapshots.parquet"
    return (
        duckdb.connect()
        .query(
            f"""
        WITH RECURSIVE reached(peer, arrival) USING KEY (peer) AS (
            SELECT $source::BIGINT, 0
            UNION SELECT l.dst, min(l.interval) + 1 AS sooner
            FROM reached r JOIN '{links}' l ON l.src = r.peer AND l.interval >= r.arrival
            LEFT JOIN recurring.reached had ON had.peer = l.dst
            WHERE had.arrival IS NULL OR had.arrival > l.interval + 1 GROUP BY l.dst)
        FROM reached""",
            params={"source": given.source},
        )
        .to_arrow_table()
    )


if __name__ == "__main__":
    run(
        "duckdb",
        {"metrics": (measure,), "as-of": (answer_as_of,), "reachability": (reach,)},
    )
