//! Loading code, and changing it while it runs.

use beamtalk_wire::class_file::without_side;
use beamtalk_wire::{ChangeKind, Operation, Side, answers, requests};

use super::parts::{
    Change, FoundFault, LeftBehind, input, left_behind, load_faults, open_faults, output, warnings,
};
use super::{Context, Failure};
use crate::confirmation::Effect;
use crate::data::Data;
use crate::host::{Host, HostError, failure};

input! {
    LoadFile {
        /// A file or directory of the project.
        path: String,
    }
}

output! {
    Loaded {
        classes: Vec<String>,
        errors: Vec<FoundFault>,
        ;
        summary: Data,
        /// Actors that keep their old code and state.
        migration_failures: Vec<LeftBehind>,
    }
}

impl Loaded {
    /// What was loaded; of a file that the client may not name only that it was not.
    fn told<H: Host>(host: &H, answer: answers::LoadAnswer) -> Self {
        Self {
            classes: answer.classes,
            errors: load_faults(host, &answer.errors),
            summary: answer.summary.map(Data::new),
            migration_failures: answer.migration_failures.map(|failures| left_behind(&failures)),
        }
    }
}

pub(crate) async fn load_file<H: Host>(context: &Context<'_, H>, input: LoadFile) -> Result<Loaded, Failure> {
    let path = context.host.source(&input.path)?;
    // A directory does not open what is closed in it.
    let except = Some(context.host.closed_below(&path)).filter(|closed| !closed.is_empty());
    let answer = context.ask(&requests::LoadFile { path, except }).await?.answer;
    Ok(Loaded::told(context.host, answer))
}

input! {
    LoadProject {
        ;
        /// The project; `.` if absent.
        path: String,
        /// Load test/ too.
        include_tests: bool,
        /// Load what did not change, too.
        force: bool,
    }
}

pub(crate) async fn load_project<H: Host>(
    context: &Context<'_, H>,
    input: LoadProject,
) -> Result<Loaded, Failure> {
    let path = input.path.map(|path| context.host.source(&path)).transpose()?;
    let request = requests::LoadProject {
        path,
        include_tests: input.include_tests,
        force: input.force,
    };
    let answer = context.ask(&request).await?.answer;
    Ok(Loaded::told(context.host, answer))
}

input! {
    ReloadClass {
        /// A class with a file.
        class: String,
    }
}

output! {
    Reloaded {
        classes: Vec<String>,
        affected_actors: u64,
        errors: Vec<FoundFault>,
        findings: Vec<FoundFault>,
        migration_failures: Vec<LeftBehind>,
    }
}

pub(crate) async fn reload_class<H: Host>(
    context: &Context<'_, H>,
    input: ReloadClass,
) -> Result<Reloaded, Failure> {
    let answer = context
        .ask(&requests::Reload { class: input.class })
        .await?
        .answer;
    Ok(Reloaded {
        classes: answer.classes,
        affected_actors: answer.affected_actors,
        errors: load_faults(context.host, &answer.errors),
        findings: open_faults(context.host, &answer.findings),
        migration_failures: left_behind(&answer.migration_failures),
    })
}

/// How many actors of a class live.
async fn actors_of<H: Host>(context: &Context<'_, H>, class: &str) -> Result<u64, HostError> {
    let request = requests::Actors {
        class: Some(class.to_owned()),
        ..requests::Actors::default()
    };
    Ok(context.ask(&request).await?.answer.actors.len() as u64)
}

/// The file and the package of a class that exists.
pub(super) async fn home_of<H: Host>(
    context: &Context<'_, H>,
    class: &str,
) -> Result<(Option<String>, Option<String>), HostError> {
    let request = requests::Info {
        symbol: class.to_owned(),
    };
    match context.ask(&request).await?.answer.info {
        answers::SymbolInfo::Class(info) if info.found => Ok((info.source, info.package)),
        _ => Err(Box::new(
            failure("class_not_found", format!("there is no class '{class}'")).detail("class", class),
        )),
    }
}

/// Whether a class whose file is known is in it: one that was saved is not, until it is flushed.
async fn is_written<H: Host>(context: &Context<'_, H>, class: &str, file: &str) -> Result<bool, HostError> {
    let changes = context.ask(&requests::Changes::default()).await?.answer;
    Ok(!changes.entries.iter().any(|view| {
        let entry = &view.entry;
        view.active
            && entry.kind == ChangeKind::NewClass
            && entry.is_whole_file
            && entry.class == class
            && entry.source_file.as_deref() == Some(file)
    }))
}

fn actors(count: u64) -> String {
    match count {
        0 => "No actors stop.".to_owned(),
        1 => "1 actor stops.".to_owned(),
        count => format!("{count} actors stop."),
    }
}

/// What taking a class out of memory would do.
async fn removal<H: Host>(context: &Context<'_, H>, class: &str) -> Result<Effect, HostError> {
    let (file, package) = home_of(context, class).await?;
    // Nobody is asked about what is refused in any case.
    if package.as_deref() == Some("stdlib") {
        let message = format!("{class} cannot be removed: it belongs to the standard library");
        return Err(failure("forbidden", message));
    }
    let count = actors_of(context, class).await?;
    let stays = match file {
        Some(file) if is_written(context, class, &file).await? => format!(" The file {file} stays."),
        Some(file) => format!(
            " It is nowhere else: {file} is not written yet. revert_change brings it back until the next flush."
        ),
        None => " It is in no file. revert_change brings it back.".to_owned(),
    };
    Ok(Effect {
        summary: format!("Remove class {class} from memory? {}{stays}", actors(count)),
        action: format!("Remove {class}"),
        classes: vec![class.to_owned()],
        actors: count,
        ..Effect::default()
    })
}

input! {
    Unload {
        /// The class.
        class: String,
        ;
        /// The person said yes. Asked for where the client can ask.
        confirm: bool,
    }
}

output! {
    Unloaded {
        class: String,
    }
}

pub(crate) async fn unload<H: Host>(context: &Context<'_, H>, input: Unload) -> Result<Unloaded, Failure> {
    let effect = removal(context, &input.class).await?;
    context.confirm(input.confirm, effect)?;
    let request = requests::Unload {
        class: input.class.clone(),
        force: Some(true),
    };
    context.ask(&request).await?;
    Ok(Unloaded { class: input.class })
}

input! {
    Method {
        /// The class.
        class: String,
        /// Such as `toggle` or `at:put:`.
        selector: String,
        /// The whole method: head, `=>` and body.
        #[cfg_attr(feature = "schema", schemars(length(max = 65_536)))]
        source: String,
        ;
        /// `instance` if absent.
        side: Side,
    }
}

output! {
    Prechecked {
        findings: Vec<FoundFault>,
        /// How many methods were checked.
        checked: u64,
        not_checked: u64,
    }
}

impl Method {
    /// As the workspace takes it: a method of the class side may have the word that says so in its class.
    fn plain(mut self) -> Self {
        let (text, line) = without_side(&self.source);
        let is_of_class = line.is_some() && !text.trim_start().starts_with("=>");
        if is_of_class && self.side != Some(Side::Instance) {
            self.source = text;
            self.side = Some(Side::Class);
        }
        self
    }
}

/// What the compiler says of a field that is not there.
const UNKNOWN_FIELD: &str = "E0202";

/// The same error, with what a client can do about a field that is not there.
fn with_way(mut error: HostError) -> HostError {
    let mut codes = error.diagnostics.iter().filter_map(|one| one.code.as_deref());
    if codes.any(|code| code == UNKNOWN_FIELD) {
        let hint = error.hint.take().map_or_else(String::new, |hint| hint + " ");
        let way = "A class gets a new field by evaluating its whole text: that of read_source, with the field declared.";
        error.hint = Some(hint + way);
    }
    error
}

pub(crate) async fn precheck_method<H: Host>(
    context: &Context<'_, H>,
    input: Method,
) -> Result<Prechecked, Failure> {
    let input = input.plain();
    let request = requests::PrecheckMethod {
        class: input.class,
        selector: input.selector,
        source: input.source,
        side: input.side,
    };
    let answer = context.ask(&request).await.map_err(with_way)?.answer;
    Ok(Prechecked {
        findings: open_faults(context.host, &answer.findings),
        checked: answer.checked,
        not_checked: answer.not_checked,
    })
}

output! {
    Saved {
        findings: Vec<FoundFault>,
        ;
        /// Absent when nothing changed.
        entry: Change,
        warnings: Vec<Data>,
    }
}

async fn install<H: Host, O>(context: &Context<'_, H>, request: O) -> Result<Saved, Failure>
where
    O: Operation<Answer = answers::SaveMethodAnswer>,
{
    let asked = context.ask(&request).await.map_err(with_way)?;
    Ok(Saved {
        findings: open_faults(context.host, &asked.answer.findings),
        entry: asked.answer.entry.as_ref().map(Change::from),
        warnings: warnings(&asked.warnings),
    })
}

pub(crate) async fn try_method<H: Host>(context: &Context<'_, H>, input: Method) -> Result<Saved, Failure> {
    let input = input.plain();
    let request = requests::TryMethod {
        class: input.class,
        selector: input.selector,
        source: input.source,
        side: input.side,
        base_sha256: None,
    };
    install(context, request).await
}

pub(crate) async fn save_method<H: Host>(context: &Context<'_, H>, input: Method) -> Result<Saved, Failure> {
    let input = input.plain();
    let request = requests::SaveMethod {
        class: input.class,
        selector: input.selector,
        source: input.source,
        side: input.side,
        base_sha256: None,
    };
    install(context, request).await
}

input! {
    SaveClass {
        /// The whole text of the class.
        #[cfg_attr(feature = "schema", schemars(length(max = 262_144)))]
        source: String,
        /// The file that flush creates, such as `src/Lamp.bt`.
        path: String,
    }
}

output! {
    SavedClass {
        classes: Vec<String>,
        entry: Change,
        ;
        warnings: Vec<Data>,
    }
}

pub(crate) async fn save_class<H: Host>(
    context: &Context<'_, H>,
    input: SaveClass,
) -> Result<SavedClass, Failure> {
    let path = context.host.inside(&input.path)?;
    let request = requests::SaveClass {
        source: input.source,
        path,
    };
    let asked = context.ask(&request).await?;
    Ok(SavedClass {
        classes: asked.answer.classes,
        entry: Change::from(&asked.answer.entry),
        warnings: warnings(&asked.warnings),
    })
}

input! {
    RemoveMethod {
        /// The class.
        class: String,
        /// Such as `toggle` or `at:put:`.
        selector: String,
        ;
        /// `instance` if absent.
        side: Side,
    }
}

output! {
    Removed {
        ;
        entry: Change,
    }
}

pub(crate) async fn remove_method<H: Host>(
    context: &Context<'_, H>,
    input: RemoveMethod,
) -> Result<Removed, Failure> {
    let request = requests::RemoveMethod {
        class: input.class,
        selector: input.selector,
        side: input.side,
    };
    let entry = context.ask(&request).await?.answer.entry;
    Ok(Removed {
        entry: entry.as_ref().map(Change::from),
    })
}

input! {
    RemoveClass {
        /// The class.
        class: String,
        ;
        /// The person said yes. Asked for where the client can ask.
        confirm: bool,
    }
}

output! {
    RemovedClass {
        actors_stopped: u64,
        ;
        entry: Change,
    }
}

pub(crate) async fn remove_class<H: Host>(
    context: &Context<'_, H>,
    input: RemoveClass,
) -> Result<RemovedClass, Failure> {
    let effect = removal(context, &input.class).await?;
    let actors_stopped = effect.actors;
    context.confirm(input.confirm, effect)?;
    let entry = context
        .ask(&requests::RemoveClass { class: input.class })
        .await?
        .answer
        .entry;
    Ok(RemovedClass {
        actors_stopped,
        entry: entry.as_ref().map(Change::from),
    })
}
