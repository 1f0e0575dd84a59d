//! The connection to one workspace, made again whenever there is one.

use std::path::Path;
use std::time::Duration;

use beamtalk_client::{Answer, Connection, Events, Greeting, Reply as Part};
use beamtalk_wire::answers::Nothing;
use beamtalk_wire::requests::{Actors, BrowseClasses, Changes, Health, Subscribe};
use beamtalk_wire::{Channel, Event, Push, TranscriptEvent, WorkspaceEvent};
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep_until, timeout};

use super::image::{Image, Stale};
use super::{Ask, News, Reach, Reply, Workspaces};

/// How often is looked whether a workspace runs.
const LOOK: Duration = Duration::from_secs(1);
/// Events come in bursts; what they are about is asked for once, and shown a few times in a second.
const SETTLE: Duration = Duration::from_millis(50);
const SHOW: Duration = Duration::from_millis(200);
/// Output of an evaluation that is kept.
const OUTPUT: usize = 64 * 1024;
const CHANNELS: [Channel; 5] = [
    Channel::Actors,
    Channel::Classes,
    Channel::Workspace,
    Channel::ReloadCheck,
    Channel::Transcript,
];

/// Follow the workspace of a project until nobody asks any more.
pub(super) fn run(
    root: &Path,
    workspaces: &dyn Workspaces,
    mut asked: mpsc::UnboundedReceiver<Ask>,
    news: &(impl Fn(News) + Clone + 'static),
) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    LocalSet::new().block_on(&runtime, async {
        loop {
            // A record that cannot be read is as good as none; `beamtalk lsp --check` tells why.
            if let Ok(Some(reach)) = workspaces.find(root) {
                let is_open = follow(root, &reach, &mut asked, news).await;
                news(News::Image(root.to_owned(), None));
                if !is_open {
                    return;
                }
            }
            let until = Instant::now() + LOOK;
            loop {
                tokio::select! {
                    ask = asked.recv() => match ask {
                        Some(ask) => {
                            let text = "no workspace runs for this project; `beamtalk repl` starts one";
                            drop(ask.reply.send(Err(text.to_owned())));
                        }
                        None => return,
                    },
                    () = sleep_until(until) => break,
                }
            }
        }
    });
}

async fn open(reach: &Reach, client: &str) -> Option<(Connection, Events)> {
    let greeting = Greeting { client, resume: None };
    let opening = Connection::open(&reach.endpoint, "cookie", &reach.cookie, greeting);
    opening.await.ok()
}

/// One connection from its beginning to its end; false when nobody asks any more.
async fn follow(
    root: &Path,
    reach: &Reach,
    asked: &mut mpsc::UnboundedReceiver<Ask>,
    news: &impl Fn(News),
) -> bool {
    let Some((connection, mut events)) = open(reach, "lsp").await else {
        return true;
    };
    let connection = std::rc::Rc::new(connection);
    let request = Subscribe {
        channels: CHANNELS.to_vec(),
        ..Subscribe::default()
    };
    if connection.ask(&request).await.is_err() {
        return true;
    }
    let mut person: Option<std::rc::Rc<Connection>> = None;
    let mut image = Image::default();
    let mut due = Some((Instant::now(), Stale::Everything));
    loop {
        let refresh = async {
            match due {
                Some((due, _)) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = events.recv() => {
                let Some(event) = event else { return true };
                let Ok(push) = serde_json::from_value::<Push>(event) else { continue };
                tell(root, &push.event, news);
                due = later(due, image.note(&push.event));
            }
            ask = asked.recv() => {
                let Some(ask) = ask else { return false };
                if ask.as_person && person.as_ref().is_none_or(|known| known.is_lost()) {
                    person = open(reach, "ide").await.map(|(connection, _)| std::rc::Rc::new(connection));
                }
                let link = if ask.as_person { person.clone() } else { Some(connection.clone()) };
                match link {
                    Some(link) => drop(spawn_local(pass_on(link, ask))),
                    None => drop(ask.reply.send(Err("the workspace cannot be reached".to_owned()))),
                }
                // What was asked may have changed something.
                due = later(due, Stale::Everything);
            }
            () = refresh => {
                let stale = due.take().map_or(Stale::Nothing, |(_, stale)| stale);
                if stale == Stale::Everything && !look(&connection, &mut image).await {
                    return true;
                }
                news(News::Image(root.to_owned(), Some(Box::new(image.clone()))));
            }
        }
    }
}

/// When the picture is next brought up to date, and how much of it.
fn later(due: Option<(Instant, Stale)>, stale: Stale) -> Option<(Instant, Stale)> {
    let wait = match stale {
        Stale::Nothing => return due,
        Stale::Shown => SHOW,
        Stale::Everything => SETTLE,
    };
    let next = Instant::now() + wait;
    Some(match due {
        None => (next, stale),
        Some((due, known)) => (due.min(next), known.max(stale)),
    })
}

fn tell(root: &Path, event: &Event, news: &impl Fn(News)) {
    match event {
        Event::Transcript(TranscriptEvent::Text { text, .. }) => news(News::Transcript(text.clone())),
        Event::Workspace(WorkspaceEvent::FlushCompleted { files }) => {
            let files = files.iter().map(|one| one.file.clone()).collect();
            news(News::Flushed(root.to_owned(), files));
        }
        _ => {}
    }
}

/// Ask for everything that is shown; false when the connection is lost. What fails stays as it was.
async fn look(connection: &Connection, image: &mut Image) -> bool {
    let limit = Duration::from_secs(10);
    if let Ok(Ok(health)) = timeout(limit, connection.ask(&Health { brief: Some(true) })).await {
        image.id = health.workspace_id;
    }
    if let Ok(Ok(found)) = timeout(limit, connection.ask(&Actors::default())).await {
        image.actors.clear();
        for actor in found.actors {
            image.actors.entry(actor.class).or_default().push(actor.pid);
        }
    }
    if let Ok(Ok(found)) = timeout(limit, connection.ask(&Changes::default())).await {
        image.entries = found.entries;
        image.conflicts = found.conflicts;
    }
    if let Ok(Ok(found)) = timeout(limit, connection.ask(&BrowseClasses {})).await {
        image.classes = found.rows;
    }
    !connection.is_lost()
}

async fn pass_on(connection: std::rc::Rc<Connection>, ask: Ask) {
    let mut pending = match connection.request(ask.op, ask.fields) {
        Ok(pending) => pending,
        Err(cause) => return drop(ask.reply.send(Err(cause.to_string()))),
    };
    let mut reply = Reply::default();
    loop {
        match pending.next().await {
            Ok(Part::Output(text)) if reply.output.len() < OUTPUT => reply.output.push_str(&text),
            Ok(Part::Output(_) | Part::NeedsInput(_)) => {}
            Ok(Part::Done(message)) => {
                reply.message = message;
                break;
            }
            Err(cause) => return drop(ask.reply.send(Err(cause.to_string()))),
        }
    }
    // A failed evaluation is an answer, too; what it is worth is judged by whoever asked.
    let failure = Answer::<Nothing>::read(reply.message.clone()).head.error;
    let answer = match failure {
        Some(error) if !ask.as_person => Err(error.message),
        _ => Ok(reply),
    };
    drop(ask.reply.send(answer));
}
