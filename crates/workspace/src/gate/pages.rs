//! The files of the browser workspace and the headers every answer carries.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::Read;

use beamtalk_http::{PROTECTION, set};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Response, StatusCode};

/// A file to be served.
#[derive(Clone, Debug)]
pub struct Page {
    pub mime: &'static str,
    pub bytes: Cow<'static, [u8]>,
    /// The bytes are compressed with gzip.
    pub is_compressed: bool,
}

/// The file at a path: `/` or below `/assets/`.
pub type Pages = fn(&str) -> Option<Page>;

/// Name and bytes of what `web/build.mjs` made, or of one page that says it was left out.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

fn built(name: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|file| file.0 == name).map(|file| file.1)
}

/// Stands in the page where the nonce of each answer goes.
const NONCE: &str = "__NONCE__";

/// A file of the browser workspace.
pub fn workspace_page(path: &str) -> Option<Page> {
    let name = match path {
        "/" => "index.html",
        _ => path
            .strip_prefix('/')
            .filter(|name| name.starts_with("assets/"))?,
    };
    let mime = match name.rsplit('.').next()? {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    };
    let plain = built(name).map(|bytes| (bytes, false));
    let found = plain.or_else(|| built(&format!("{name}.gz")).map(|bytes| (bytes, true)));
    found.map(|(bytes, is_compressed)| Page {
        mime,
        bytes: bytes.into(),
        is_compressed,
    })
}

pub(crate) type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// How a page is wanted.
pub(crate) struct Wish<'a> {
    /// Where its script may connect to.
    pub(crate) socket_origin: &'a str,
    /// The client takes gzip.
    pub(crate) takes_compressed: bool,
    /// Random, new for each answer.
    pub(crate) nonce: &'a str,
}

pub(crate) fn page(page: Page, wish: &Wish<'_>) -> Reply {
    let is_sent_compressed = page.is_compressed && wish.takes_compressed;
    let bytes = match (page.is_compressed, is_sent_compressed) {
        (true, false) => match inflated(&page.bytes) {
            Ok(bytes) => bytes,
            Err(cause) => {
                tracing::error!("a file of the browser workspace is damaged: {cause}");
                return empty(StatusCode::INTERNAL_SERVER_ERROR);
            }
        },
        _ if page.mime.starts_with("text/html") => String::from_utf8_lossy(&page.bytes)
            .replace(NONCE, wish.nonce)
            .into_bytes(),
        _ => page.bytes.into_owned(),
    };
    let mut reply = whole(bytes);
    set(&mut reply, "content-type", page.mime);
    if is_sent_compressed {
        set(&mut reply, "content-encoding", "gzip");
    }
    set(&mut reply, "content-security-policy", &policy(wish));
    set(
        &mut reply,
        "permissions-policy",
        "camera=(), microphone=(), geolocation=(), usb=(), payment=()",
    );
    protect(&mut reply);
    reply
}

fn policy(wish: &Wish<'_>) -> String {
    let Wish {
        socket_origin, nonce, ..
    } = wish;
    format!(
        "default-src 'none'; script-src 'self'; style-src-elem 'self' 'nonce-{nonce}'; style-src-attr 'unsafe-inline'; \
         img-src 'self' data:; font-src 'self'; connect-src 'self' {socket_origin}; frame-ancestors 'none'; \
         base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

fn inflated(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain)?;
    Ok(plain)
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = whole(Vec::new());
    *reply.status_mut() = status;
    protect(&mut reply);
    reply
}

/// An answer with these bytes.
fn whole(bytes: Vec<u8>) -> Reply {
    Response::new(Full::new(Bytes::from(bytes)).boxed_unsync())
}

/// An answer with a body that is made elsewhere.
pub(crate) fn with_body(status: u16, body: UnsyncBoxBody<Bytes, Infallible>) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    protect(&mut reply);
    reply
}

fn protect(reply: &mut Reply) {
    for (name, value) in PROTECTION {
        set(reply, name, value);
    }
}
