"""Names made to harm code that quotes, prints, parses or draws them."""

from __future__ import annotations

TAKEN = (
    "\"'}) DETACH DELETE n //",
    "`) MATCH (n) DETACH DELETE n //",
    "' OR 1=1 /*",
    '"',
    "'",
    "`Peer`",
    "\\",
    "\\u0000 \\n",
    "$run",
    "$\\frac{1}{$ ${jndi:ldap://x} {{7*7}} %s %n",
    "../../../etc/passwd",
    "C:\\CON.",
    "=cmd|' /C calc'!A0",
    "a,b;c|d",
    '["a", "b"]',
    "</node><script>alert(1)</script>]]>&amp;",
    " ",
    " of blanks ",
    "-rf",
    "_hidden",
    "--help",
    "7",
    "07",
    "null",
    "NaN",
    "a\u0301",
    "\u00e1",
    "A\u0301",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "\u202egnp.exe",
    "\ufefffirst",
    "\u2028line\u2029",
    "zero\u200bwidth",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\ufffe\uffff\U0010ffff",
    "long " + "\u00e9x" * 4_997 + ".",
)
"""Names of peers, topics, layers or messages that ingest accepts and returns unchanged."""

REFUSED = {
    "": "is empty",
    "two\nlines": "has a control character",
    "\r": "has a control character",
    "\x00": "has a control character",
    "\x1b[2J": "has a control character",
    "\x7f": "has a control character",
    "\x85": "has a control character",
    "half a pair \ud800": "has a control character",
}
"""Names that ingest refuses, with the words of the refusal."""

OF_NO_RUN = (
    ".", "..", "../x", "/etc", "a/b", "a\\b", "-x", ".hidden", "a b", "two\nlines",
    "'", '"', "`", "$x", "\u202ex", "\u00e9", "\U0001f469", "no*", "x" * 101, *TAKEN[:3],
)  # fmt: skip
"""Names that no run can have."""


def reports() -> list[dict[str, object]]:
    """A ring of peers with all the accepted names, and reports with the refused ones.

    In intervals 0 and 1 peer i is linked to peer i + 1 in layer i and for topic i, subscribes to
    topics i - 1 and i, and publishes message i to topic i, which reaches peer i + 1.
    """
    header = {"format": "vizpub.run/1", "protocol": TAKEN[0], "parameters": {TAKEN[1]: TAKEN[2]}}
    ring = [_report(place, interval) for interval in (0, 1) for place in range(len(TAKEN))]
    return [header, *ring, *({**_report(0, 0), "peer": name} for name in REFUSED)]


def _report(place: int, interval: int) -> dict[str, object]:
    before, here, after = (TAKEN[(place + step) % len(TAKEN)] for step in (-1, 0, 1))
    report: dict[str, object] = {
        "format": "vizpub.report/1",
        "peer": here,
        "interval": interval,
        "neighbors": [{"peer": after, "layer": here, "topic": here}],
        "topics": [before, here],
        "roles": [{"role": "rendezvous", "topic": here}],
        "sent": [],
        "received": [],
    }
    if interval == 0:
        copy = {"message": here, "topic": here, "publisher": here, "hops": 0, "to": [after]}
        got = {"message": before, "topic": before, "publisher": before, "from": before, "hops": 1}
        report |= {"sent": [copy], "received": [got]}
    return report
