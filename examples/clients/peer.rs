//! Peers of a ring that report to a collector of vizpub. Rust 1.70 or later, standard library only.
//!
//!     vizpub live collect lab --no-token --port 8600
//!     rustc peer.rs && ./peer http://127.0.0.1:8600/v1/runs/lab 10 30
//!
//! The arguments are the URL of the run, the number of peers and of intervals. VIZPUB_TOKEN holds the
//! collector's token, if it has one. The standard library has no TLS: this client is for a collector
//! on the same machine. With crates, use reqwest and serde_json.

use std::io::{Error, Read, Result, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// Send a request on a connection of its own, and read the whole answer.
fn request(url: &str, method: &str, below: &str, body: &str) -> Result<Answer> {
    let (host, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or_else(|| Error::other("give the URL of a run: http://HOST:PORT/v1/runs/RUN"))?;
    let token = std::env::var("VIZPUB_TOKEN")
        .map(|token| format!("Authorization: Bearer {token}\r\n"))
        .unwrap_or_default();
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(
        stream,
        "{method} /{path}{below} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}\
         Content-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    Ok(Answer {
        status: status.ok_or_else(|| Error::other("the answer is not HTTP"))?,
        head: head.to_lowercase(),
        body: body.to_string(),
    })
}

/// A whole number of a flat JSON object.
fn number(json: &str, name: &str) -> Result<u64> {
    json.split_once(&format!("\"{name}\":"))
        .map(|(_, rest)| rest.trim_start())
        .map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or(""))
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| Error::other(format!("no {name} in {json}")))
}

/// Send lines until the collector has them; an error if it refuses all of them.
fn send(url: &str, lines: &str) -> Result<String> {
    let mut delay = 1;
    loop {
        match request(url, "POST", "/reports", lines) {
            Ok(answer) if answer.status == 202 => return Ok(answer.body),
            // A report that is sent twice counts once, so it is safe to send again.
            Ok(answer) if [408, 429, 502, 503, 504].contains(&answer.status) => {
                let wait = answer.head.split_once("retry-after: ").and_then(|(_, rest)| {
                    rest.lines().next().and_then(|seconds| seconds.trim().parse().ok())
                });
                sleep(Duration::from_secs(wait.unwrap_or(delay)));
            }
            Ok(answer) => {
                return Err(Error::other(format!("{}: {}", answer.status, answer.body)));
            }
            Err(error) => {
                eprintln!("{error}; again in {delay} s");
                sleep(Duration::from_secs(delay));
            }
        }
        delay = (2 * delay).min(30);
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, peers, intervals] = arguments.as_slice() else {
        return Err(Error::other("usage: peer URL PEERS INTERVALS"));
    };
    let peers: u64 = peers.parse().map_err(Error::other)?;
    let intervals: u64 = intervals.parse().map_err(Error::other)?;

    // All peers count intervals from the run's epoch, by the collector's clock.
    let answer = request(url, "GET", "", "")?;
    if answer.status != 200 {
        return Err(Error::other(format!("{}: {}", answer.status, answer.body)));
    }
    let interval_us = number(&answer.body, "interval_us")?;
    let now_us = number(&answer.body, "now_us")?;
    let (first, asked) = (now_us / interval_us, Instant::now());

    for interval in first..first + intervals {
        let end = Duration::from_micros((interval + 1) * interval_us - now_us);
        sleep(end.saturating_sub(asked.elapsed()));
        let left = interval == first + intervals - 1;
        let lines: String = (0..peers)
            .map(|peer| {
                let next = (peer + 1) % peers;
                format!(
                    "{{\"format\":\"vizpub.report/1\",\"peer\":\"peer-{peer}\",\
                     \"interval\":{interval},\"seq\":{interval},\"neighbors\":[\"peer-{next}\"],\
                     \"topics\":[\"news\"],\"sent\":[],\"received\":[],\"left\":{left}}}\n"
                )
            })
            .collect();
        let body = send(url, &lines)?;
        let (taken, refused) = (number(&body, "taken")?, number(&body, "refused")?);
        println!("interval {interval}: {taken} taken, {refused} refused");
    }
    Ok(())
}
