//! The sessions in a browser, on the loopback address only.
//!
//! `gate` decides who comes in, `routes` turns requests into file operations on the tree,
//! `streams` follows files as server-sent events, `server` is the HTTP around them.

mod gate;
mod routes;
mod server;
mod streams;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use beamtalk_storage::random_hex;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::{Client, Failure};
use gate::Gate;

/// Serve until interrupted; `tell` is given the address with its token, and the port.
#[expect(clippy::disallowed_methods, reason = "the page of the agents")]
pub fn serve_page(
    client: Client,
    port: u16,
    tell: impl FnOnce(&str, u16) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async move {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Failure::plain(format!("cannot listen on {address}: {error}")))?;
        let port = listener.local_addr()?.port();
        let token = random_hex::<32>().map_err(std::io::Error::from)?;
        let url = format!("http://127.0.0.1:{port}/#{token}");
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        let gate = Gate::new(port, token, random_hex::<32>().map_err(std::io::Error::from)?);
        tell(&url, port)?;
        tokio::select! {
            () = server::serve(listener, Arc::new(gate), Arc::new(client)) => {}
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        Ok::<(), Failure>(())
    })?;
    // Requests under way are file operations of their own; the daemon ends them with us.
    runtime.shutdown_background();
    Ok(())
}
