//! `beamtalk loop ui`: a running loop in the terminal.
//!
//! `model` says what keys do and what is shown, `view` draws it; here are the connections: one that
//! follows the status, one for the output of each process that was chosen, one for questions.

mod model;
mod view;

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use beamtalk_loop::control::{Answer, Ask};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::{Located, no_loop};
use crate::exit::Exit;
use model::{Action, Model};

/// How often news are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How often session state is asked for; nobody tells when it changes.
const STATE: Duration = Duration::from_secs(1);
/// How many lines of a process are asked for.
const TAIL: usize = 500;

/// What the connections bring.
enum News {
    Answer(Answer),
    /// The answer about the output of one process.
    Output(String, Answer),
    /// The loop has ended.
    End,
}

pub(super) fn run(place: &Located) -> anyhow::Result<Exit> {
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        anyhow::bail!("loop ui needs a terminal; 'loop status --follow' does not");
    }
    let (sender, news) = channel();
    if !follow(place, Ask::Follow, sender.clone(), News::Answer) {
        return no_loop();
    }
    let mut terminal = ratatui::try_init()?;
    let outcome = interact(place, &mut terminal, &sender, &news);
    ratatui::restore();
    outcome
}

/// Hand on every answer to a question, from a thread of its own; false when no loop runs.
fn follow(
    place: &Located,
    ask: Ask,
    news: Sender<News>,
    wrap: impl Fn(Answer) -> News + Send + 'static,
) -> bool {
    let Some(mut client) = place.connect() else {
        return false;
    };
    std::thread::spawn(move || {
        let mut answer = client.ask(&ask).ok();
        while let Some(found) = answer {
            if news.send(wrap(found)).is_err() {
                return;
            }
            answer = client.receive().unwrap_or(None);
        }
        // Nobody looks any more, or they learn that it is over.
        if ask == Ask::Follow {
            drop(news.send(News::End));
        }
    });
    true
}

fn interact(
    place: &Located,
    terminal: &mut DefaultTerminal,
    sender: &Sender<News>,
    news: &Receiver<News>,
) -> anyhow::Result<Exit> {
    let mut model = Model::default();
    let mut followed = BTreeSet::new();
    let mut asked: Option<Instant> = None;
    let mut is_drawn = false;
    loop {
        while let Ok(found) = news.try_recv() {
            is_drawn = false;
            match found {
                News::End => return Ok(Exit::Success),
                News::Output(name, answer) => model.said(&name, answer),
                News::Answer(answer) => model.learn(answer),
            }
        }
        if asked.is_none_or(|at| at.elapsed() >= STATE) {
            asked = Some(Instant::now());
            follow_once(place, Ask::State { key: None }, sender);
        }
        if let Some(name) = model.chosen().map(str::to_owned)
            && followed.insert(name.clone())
        {
            let ask = Ask::Logs {
                process: name.clone(),
                tail: TAIL,
                follow: true,
            };
            follow(place, ask, sender.clone(), move |answer| {
                News::Output(name.clone(), answer)
            });
        }
        if !is_drawn {
            terminal.draw(|frame| view::draw(frame, &model))?;
            is_drawn = true;
        }
        if !event::poll(LOOK)? {
            continue;
        }
        is_drawn = false;
        let Event::Key(key) = event::read()? else { continue };
        if key.kind != KeyEventKind::Press {
            continue;
        }
        match model.press(key) {
            Action::None => {}
            Action::Quit => return Ok(Exit::Success),
            Action::Operate(process, operation) => {
                let ask = Ask::Process { process, operation };
                follow_once(place, ask, sender);
            }
        }
    }
}

/// Ask one question without waiting for the answer.
fn follow_once(place: &Located, ask: Ask, sender: &Sender<News>) {
    let Some(mut client) = place.connect() else { return };
    let news = sender.clone();
    std::thread::spawn(move || {
        if let Ok(answer) = client.ask(&ask) {
            // The view may be closed by now.
            drop(news.send(News::Answer(answer)));
        }
    });
}
