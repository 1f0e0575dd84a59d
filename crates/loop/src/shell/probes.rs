//! HTTP probes: one question, one answer.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::sync::mpsc;

use super::Inbound;
use crate::core::{Event, Ms};

const REDIRECTS: usize = 10;

/// The client, made when the first probe needs it: it loads the roots of the system.
#[derive(Debug, Default)]
pub(crate) struct Prober {
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl Prober {
    /// Ask an address; the answer comes to `inbox` under `id`.
    pub(crate) fn ask(&self, id: u64, url: String, limit: Ms, inbox: mpsc::Sender<Inbound>) {
        let client = self.client.get_or_init(client).clone();
        tokio::spawn(async move {
            let answer = match client {
                Ok(client) => get(&client, &url, Duration::from_millis(limit)).await,
                Err(reason) => Err(reason),
            };
            drop(inbox.send(Inbound::Event(Event::Probed { id, answer })).await);
        });
    }
}

fn client() -> Result<reqwest::Client, String> {
    // A second installation is refused, which is fine: the first one serves.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::limited(REDIRECTS))
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| describe(&error))
}

async fn get(client: &reqwest::Client, url: &str, limit: Duration) -> Result<(), String> {
    let response = client
        .get(url)
        .timeout(limit)
        .send()
        .await
        .map_err(|error| describe(&error))?;
    let status = response.status();
    if status.is_success() {
        Ok(())
    } else {
        Err(format!("status {}", status.as_u16()))
    }
}

/// The innermost cause, which says most.
fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".into();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
