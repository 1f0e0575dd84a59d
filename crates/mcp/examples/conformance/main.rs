//! The core under the official conformance suite: its transport, dispatch, questions, tasks and watches with the tools,
//! resources and prompts that the suite calls by name. Prints its port and serves until it is ended; with `--stdio` it
//! serves one client over its standard input and output.

#![expect(
    clippy::print_stdout,
    reason = "whoever starts it reads the port, or the answers, from its output"
)]

mod answers;
mod work;
mod world;

use std::cell::Cell;
use std::convert::Infallible;
use std::io::Read;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use beamtalk_http::{EventStream, bind, is_host_allowed, read_body, values};
use beamtalk_mcp::{
    Endpoint, HttpAnswer, HttpRequest, LINE_LIMIT, LineReader, Outgoing, Secrets, Session, admits,
};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, ORIGIN};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use world::World;

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;
type Serving = Rc<Endpoint<World>>;

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let is_pipe = std::env::args().any(|word| word == "--stdio");
    LocalSet::new().block_on(&runtime, async {
        if is_pipe {
            talk().await;
            return Ok(());
        }
        serve().await
    })
}

/// One client over standard input and output.
async fn talk() {
    let (outgoing, mut answers) = Outgoing::new(Secrets::default());
    let session = Session::with_fixture(
        Rc::new(World::default()),
        Rc::new(answers::Answers),
        outgoing.clone(),
    );
    let (sender, mut lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        let (mut reader, mut bytes) = (LineReader::default(), vec![0; 64 * 1024]);
        while let Ok(length @ 1..) = std::io::stdin().read(&mut bytes) {
            for line in reader.take(bytes.get(..length).unwrap_or_default()) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        }
    });
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => session.receive(line),
                None => return,
            },
            text = answers.recv() => if let Some(text) = text {
                println!("{text}");
                outgoing.written(text.len());
            },
        }
    }
}

async fn serve() -> std::io::Result<()> {
    let (listener, address) = bind((Ipv4Addr::LOCALHOST, 0).into()).await?;
    let world = Rc::new(World::default());
    let fixture = Rc::new(answers::Answers);
    let number = Cell::new(0_u64);
    let new_id = move || {
        number.set(number.get() + 1);
        Some(format!("session-{}", number.get()))
    };
    let endpoint = Endpoint::with_fixture(world, fixture, new_id);
    println!("{}", address.port());
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::task::spawn_local(attend(stream, endpoint.clone()));
    }
}

async fn attend(stream: TcpStream, endpoint: Serving) {
    let Ok(local) = stream.local_addr() else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let endpoint = endpoint.clone();
        async move {
            let hosts = values(request.headers(), HOST);
            let is_own = is_host_allowed(&hosts, local);
            let origins = values(request.headers(), ORIGIN);
            let is_own_page = origins.iter().all(|origin| {
                let host = origin.strip_prefix(b"http://").unwrap_or(origin);
                is_host_allowed(&[host], local)
            });
            let answer = if is_own && is_own_page {
                answer(request, &endpoint).await
            } else {
                HttpAnswer::status(403)
            };
            Ok::<_, Infallible>(replied(answer))
        }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A client that leaves in the middle is no fault.
    drop(connection.await);
}

async fn answer(request: Request<Incoming>, endpoint: &Serving) -> HttpAnswer {
    let method = request.method().as_str().to_owned();
    let has_session = request.headers().contains_key("mcp-session-id");
    if method != "POST" && !(matches!(method.as_str(), "GET" | "DELETE") && has_session) {
        return HttpAnswer::status(405);
    }
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
    let mut passed = HttpRequest {
        method,
        headers: headers.collect(),
        body: Vec::new(),
    };
    if passed.method == "POST" {
        if let Err((status, words)) = admits(&passed) {
            return HttpAnswer::refused(status, words);
        }
        match read_body(request.into_body(), LINE_LIMIT).await {
            Ok(body) => passed.body = body.to_vec(),
            Err(_) => return HttpAnswer::status(413),
        }
    }
    // The end of the connection ends this future, and what it waits for with it.
    endpoint.answer(passed, std::future::pending()).await
}

fn replied(answer: HttpAnswer) -> Response<Body> {
    let (status, headers, body) = match answer {
        HttpAnswer::Whole {
            status,
            headers,
            body,
        } => (status, headers, Full::new(Bytes::from(body)).boxed_unsync()),
        HttpAnswer::Stream { headers, mut events } => {
            let (frames, received) = mpsc::channel(64);
            tokio::task::spawn_local(async move {
                while let Some(event) = events.recv().await {
                    if frames.send(Bytes::from(event)).await.is_err() {
                        return;
                    }
                }
            });
            (200, headers, EventStream::new(received, ()).boxed_unsync())
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    for (name, value) in headers {
        beamtalk_http::set(&mut response, name, &value);
    }
    response
}

/// A pause of the suite's tools.
pub(crate) async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}
