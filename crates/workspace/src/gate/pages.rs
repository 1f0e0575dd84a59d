//! Static pages and the headers every answer carries.

use beamtalk_http::{PROTECTION, set};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Response, StatusCode};

/// A file of the browser workspace.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// `/` or below `/assets/`.
    pub path: &'static str,
    pub mime: &'static str,
    pub bytes: &'static [u8],
}

/// The smallest browser workspace: it turns the token of a login link into a login.
pub const LOGIN_PAGES: &[Page] = &[
    Page {
        path: "/",
        mime: "text/html; charset=utf-8",
        bytes: include_bytes!("pages/index.html"),
    },
    Page {
        path: "/assets/login.js",
        mime: "text/javascript; charset=utf-8",
        bytes: include_bytes!("pages/login.js"),
    },
];

pub(crate) type Reply = Response<Full<Bytes>>;

/// The page at a path.
pub(crate) fn find<'a>(pages: &'a [Page], path: &str) -> Option<&'a Page> {
    pages.iter().find(|page| page.path == path)
}

pub(crate) fn page(page: &Page, socket_origin: &str) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from_static(page.bytes)));
    set(&mut reply, "content-type", page.mime);
    let policy = format!(
        "default-src 'self'; connect-src 'self' {socket_origin}; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    );
    set(&mut reply, "content-security-policy", &policy);
    protect(&mut reply);
    reply
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Full::default());
    *reply.status_mut() = status;
    protect(&mut reply);
    reply
}

fn protect(reply: &mut Reply) {
    for (name, value) in PROTECTION {
        set(reply, name, value);
    }
}
