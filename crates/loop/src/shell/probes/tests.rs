use std::net::TcpListener;

use std::io::{BufRead, BufReader, Write};

use super::{Prober, resolve};

/// A server that answers the path `/N` with a redirect to N - 1, and `/0` with the status.
fn serve(status: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = BufReader::new(stream.try_clone().unwrap());
            let mut first = String::new();
            head.read_line(&mut first).unwrap();
            let mut line = String::new();
            while head.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            let path = first.split(' ').nth(1).unwrap().trim_start_matches('/');
            let answer = match path.parse::<u32>() {
                Ok(0) | Err(_) => format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n"),
                Ok(left) => format!("HTTP/1.1 302 Found\r\nlocation: ./{}\r\n\r\n", left - 1),
            };
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    port
}

async fn get(port: u16, path: &str) -> Result<(), String> {
    Prober::default()
        .get(&format!("http://127.0.0.1:{port}{path}"))
        .await
}

#[tokio::test]
async fn the_last_status_decides() {
    let good = serve("204 No Content");
    assert_eq!(get(good, "").await, Ok(()));
    assert_eq!(get(good, "/10").await, Ok(()));
    assert_eq!(get(good, "/11").await, Err("too many redirects".to_owned()));
    let bad = serve("503 Busy");
    assert_eq!(get(bad, "/3").await, Err("status 503".to_owned()));
}

#[tokio::test]
async fn what_cannot_be_asked_is_named() {
    let prober = Prober::default();
    for (url, part) in [
        ("ftp://localhost/", "neither http nor https"),
        ("nonsense", "neither http nor https"),
        ("http://", ""),
        ("http://127.0.0.1:1/", "refused"),
    ] {
        let reason = prober.get(url).await.unwrap_err();
        assert!(reason.contains(part), "{url}: {reason}");
    }
}

/// A server without TLS, asked for it.
#[tokio::test]
async fn https_is_never_plain() {
    let port = serve("200 OK");
    let reason = Prober::default().get(&format!("https://127.0.0.1:{port}/")).await;
    assert!(reason.is_err(), "{reason:?}");
}

#[test]
fn locations_are_resolved_as_browsers_do() {
    let from = "http://a:8/b/c/d?e".parse().unwrap();
    for (location, wanted) in [
        ("https://x/y", "https://x/y"),
        ("//x/y", "http://x/y"),
        ("/y?z", "http://a:8/y?z"),
        ("y", "http://a:8/b/c/y"),
        ("./y/../z?q=../r#part", "http://a:8/b/c/z?q=../r"),
        ("../../../y", "http://a:8/y"),
        ("?q", "http://a:8/b/c/d?q"),
        ("#part", "http://a:8/b/c/d"),
    ] {
        assert_eq!(
            resolve(&from, location).unwrap().to_string(),
            wanted,
            "{location}"
        );
    }
    assert!(resolve(&from, "http://a b/").is_err());
}
