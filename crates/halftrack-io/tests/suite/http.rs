//! The HTTP server in front of a program's routes: what it refuses before any route sees it.

use crate::rig::{Host, soon};
use halftrack_io::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends `request` as it is, and gives all that comes back until the server closes.
async fn ask(host: &Host, request: &str) -> String {
    let mut socket = TcpStream::connect(host.http.address()).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![];
    soon("the end", socket.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_one_address_have_a_rate_on_all_its_connections_together() {
    let host = Host::start_with(Limits { requests_per_second: 1, ..Limits::default() }).await;
    let one = "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n";
    let answers = ask(&host, &one.repeat(100)).await;
    let statuses: Vec<_> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    // Five at once, of which the connection was one. A slow machine may be given one more.
    assert!((4..=6).contains(&(statuses.len() - 1)), "{statuses:?}");
    assert_eq!(statuses.last(), Some(&"429"));
    assert!(statuses[..4].iter().all(|status| *status == "404"), "{statuses:?}");
    assert!(answers.to_lowercase().contains("retry-after: 1"), "{answers}");
    assert!(host.door.stats().request_rate >= 1);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_one_host_is_400_and_ends_the_connection() {
    let host = Host::start_with(Limits::default()).await;
    let next = "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n";
    for headers in ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n", "Host:\r\n", "Host: a b\r\n"] {
        let answer = ask(&host, &format!("GET /nothing HTTP/1.1\r\n{headers}\r\n{next}")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{headers}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{headers}: the next request was answered");
    }
    let old = ask(&host, "GET /nothing HTTP/1.0\r\n\r\n").await;
    assert!(old.starts_with("HTTP/1.0 404 "), "{old}");
    host.stop().await;
}
