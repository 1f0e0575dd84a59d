//! What `check` finds in a package, looking again only at what a change can have reached.
//!
//! Each file is kept with what it shows to others and what its findings rest on (`beamtalk_compiler::reads`). A file is
//! looked at when its text changed, or something that its findings rest on; all others are not even parsed, unless one
//! that is looked at asks for their classes.

mod kept;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use beamtalk_compiler::reads::{Key, Outline, check_noting};
use beamtalk_compiler::{ClassTable, Later, Origin, Packages};
use ecow::EcoString;

use crate::build::{Package, plan};
use crate::error::Result;
use crate::files;
use crate::findings::{FileFindings, Finding};
use crate::source::{self, Parsed, Text};
use crate::specs::Specs;
use kept::{Bytes, Kept, Record};

/// A file that was written this shortly before it was looked at may be written again without looking newer.
const UNSURE: Duration = Duration::from_millis(50);

/// How a file looks from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    /// In nanoseconds.
    changed: u64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        let (seconds, nanoseconds) =
            (found.mtime(), found.mtime_nsec()).max((found.ctime(), found.ctime_nsec()));
        let (seconds, nanoseconds) = (u64::try_from(seconds).ok()?, u64::try_from(nanoseconds).ok()?);
        Some(Self {
            length: found.len(),
            changed: seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?,
        })
    }
}

/// What was found in a package.
#[derive(Debug)]
pub struct Checks {
    /// Of each file that was asked for, in order.
    pub findings: Vec<FileFindings>,
    /// How many files were looked at anew.
    pub looked_at: usize,
}

/// Where the files of a package are.
struct Home {
    root: PathBuf,
    name: Option<EcoString>,
}

/// A file of a package.
struct Source<'a> {
    package: &'a Package,
    home: Arc<Home>,
    path: PathBuf,
    origin: Origin,
    /// Its findings are asked for.
    is_wanted: bool,
    /// Relative to its package, for people.
    shown: EcoString,
    /// Under this name it is kept.
    key: String,
}

impl Source<'_> {
    fn read(&self) -> Result<Parsed> {
        let text = Text::read(&self.path, &self.package.project.root)?;
        Ok(self.parse(text))
    }

    fn parse(&self, text: Text) -> Parsed {
        let module_path = plan::module_path(&self.path, &self.package.project.root);
        text.parse(self.package.name(), &module_path, self.origin)
    }

    /// The file for whoever asks for its classes.
    fn later(&self, known: &Known<'_>) -> Later {
        let (shown, home, origin) = (self.shown.clone(), Arc::clone(&self.home), self.origin);
        let package = home.name.clone();
        if let Some(parsed) = &known.parsed {
            let parsed = Arc::clone(parsed);
            return Later::new(shown, package, origin, move || parsed.file.clone());
        }
        let path = self.path.clone();
        Later::new(shown, package, origin, move || {
            let module_path = plan::module_path(&path, &home.root);
            Text::find(&path, &home.root)
                .parse(home.name.as_deref(), &module_path, origin)
                .file
        })
    }
}

/// What this run knows of a file.
struct Known<'a> {
    record: Record<'a>,
    /// What it shows to others, without what it adds to keys.
    shows: Outline,
    /// Only where somebody had to look.
    parsed: Option<Arc<Parsed>>,
}

/// Look at a package: at all files of its own, or those below a path.
pub fn check(package: &Package, below: Option<&Path>) -> Result<Checks> {
    let place = package.project.manifest.is_some().then(|| {
        let output = package.output();
        output.parent().unwrap_or(&output).join("checks")
    });
    let sources = sources(package, below)?;
    let specs = Specs::of_package(package);
    let environment = environment(package, &specs);
    let bytes = place.as_deref().map_or_else(Bytes::default, Bytes::read);
    let mut old = Kept::of(&bytes);
    let is_new = old.environment != environment;
    if is_new {
        old = Kept::default();
    }
    let written = now();
    let library = library(&mut old);
    let seen = see(&sources, &old)?;
    let (mut known, changed, is_moved) = compare(&sources, seen, &mut old);
    let packages = names(package, &sources, &known);
    let shared = packages.shared_names().collect::<Vec<_>>().join(" ");
    let is_plain = shared.is_empty();
    for known in &mut known {
        // Keys do not tell two classes of one name apart.
        let is_unsure = shared != old.shared || (!is_plain && !changed.is_empty());
        if is_unsure || known.record.rests_on(&changed) {
            known.record.forget_findings();
        }
    }
    let mut all = sources.iter().zip(&known);
    let is_due = all.any(|(source, known)| source.is_wanted && !known.record.is_checked());
    let looked_at = if is_due {
        let mut table = table(&library, &sources, &known, packages)?;
        let own = sources
            .iter()
            .zip(&known)
            .filter(|(it, _)| !it.package.is_dependency);
        let modules = own.flat_map(|(_, known)| known.shows.modules.iter().cloned());
        table.set_specs(specs.later(modules.collect()));
        look_again(&sources, &mut known, &table)?
    } else {
        0
    };
    let wanted = sources.iter().zip(&known).filter(|(source, _)| source.is_wanted);
    let findings = wanted
        .map(|(source, known)| of_file(source, known))
        .collect::<Result<Vec<_>>>()?;
    if let Some(place) = place.filter(|_| is_new || is_moved || looked_at > 0) {
        let own = sources.into_iter().zip(known);
        let own = own.map(|(source, known)| (Cow::from(source.key), known.record));
        let all = own.chain(library).collect();
        old.followed_by(environment, shared, written, all).write(&place);
    }
    Ok(Checks { findings, looked_at })
}

/// All classes, most of them to be read when somebody asks for them.
fn table(
    library: &[(Cow<'_, str>, Record<'_>)],
    sources: &[Source<'_>],
    known: &[Known<'_>],
    packages: Packages,
) -> Result<ClassTable> {
    let is_plain = packages.shared_names().next().is_none();
    let mut table = ClassTable::empty();
    for (name, record) in library {
        declare_library(&mut table, name, &record.shows());
    }
    table.set_packages(packages);
    for (source, known) in sources.iter().zip(known) {
        let later = || Arc::new(source.later(known));
        if !is_plain || !table.declare_later(&known.shows, &later()) {
            match &known.parsed {
                Some(parsed) => table.declare(&parsed.file),
                None => table.declare(&source.read()?.file),
            }
        }
    }
    Ok(table)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// All files that a check reads, those of dependencies first: in this order they are declared.
fn sources<'a>(package: &'a Package, below: Option<&Path>) -> Result<Vec<Source<'a>>> {
    let mut all = Vec::new();
    for each in package.in_order() {
        all.push((each, each.sources()?, Origin::Package));
    }
    let tests = package.project.root.join("test");
    if package.project.manifest.is_some() && tests.is_dir() {
        all.push((package, files::find(&tests, &["bt"])?, Origin::Test));
    }
    if let Some(below) = below {
        let known: BTreeSet<&PathBuf> = all.iter().flat_map(|(_, paths, _)| paths).collect();
        let beside = beside(below, &known)?;
        all.push((package, beside, Origin::Test));
    }
    let mut sources = Vec::new();
    for (each, paths, origin) in all {
        let home = Arc::new(Home {
            root: each.project.root.clone(),
            name: each.name().map(EcoString::from),
        });
        sources.extend(paths.into_iter().map(|path| Source {
            is_wanted: !each.is_dependency && below.is_none_or(|below| path.starts_with(below)),
            key: path.to_string_lossy().into_owned(),
            shown: files::shown(&path, &home.root).into(),
            package: each,
            home: Arc::clone(&home),
            path,
            origin,
        }));
    }
    Ok(sources)
}

/// Files that are asked for by name and belong to no package: like tests they see the package, which does not see them.
pub fn beside(below: &Path, known: &BTreeSet<&PathBuf>) -> Result<Vec<PathBuf>> {
    let mut found = if below.is_dir() {
        files::find(below, &["bt"])?
    } else if files::has_extension(below, &["bt"]) {
        vec![below.to_owned()]
    } else {
        Vec::new()
    };
    found.retain(|path| !known.contains(path));
    Ok(found)
}

/// Everything that makes old results worthless as a whole.
fn environment(package: &Package, specs: &Specs) -> String {
    let mut parts = plan::program();
    for each in package.in_order() {
        let root = &each.project.root;
        let manifest = files::read_kept(&root.join(crate::manifest::FILE_NAME)).unwrap_or_default();
        parts.push(root.display().to_string());
        parts.push(files::hash(&manifest));
    }
    parts.push(specs.fingerprint());
    files::hash(parts.join("\n").as_bytes())
}

/// What the library shows to others.
fn library<'a>(old: &mut Kept<'a>) -> Vec<(Cow<'a, str>, Record<'a>)> {
    let sources: Vec<(&str, &str)> = source::library_sources().collect();
    let key = |name: &str| format!("library:{name}");
    let kept: Option<Vec<_>> = sources
        .iter()
        .map(|(name, _)| old.files.remove_entry(key(name).as_str()))
        .map(|entry| entry.map(|(key, record)| (Cow::from(key), record)))
        .collect();
    kept.unwrap_or_else(|| {
        let outlines = source::parallel(&sources, |(name, text)| {
            let mut outline = Outline::of(&source::library_file(name, text));
            // The library changes with the program, and then everything does.
            outline.gives.clear();
            outline
        });
        let records = sources.iter().zip(outlines).map(|((name, text), outline)| {
            let stamp = Stamp {
                length: text.len() as u64,
                changed: 0,
            };
            (key(name).into(), Record::new(stamp, String::new(), &outline))
        });
        records.collect()
    })
}

fn declare_library(table: &mut ClassTable, key: &str, outline: &Outline) {
    let name = key.trim_start_matches("library:");
    let Some((name, text)) = source::library_sources().find(|(known, _)| *known == name) else {
        return;
    };
    let package = Some(EcoString::from(source::LIBRARY_PACKAGE));
    let parse = move || source::library_file(name, text);
    let later = Arc::new(Later::new(name.into(), package, Origin::Library, parse));
    if !table.declare_later(outline, &later) {
        table.declare(&source::library_file(name, text));
    }
}

/// Whether a file that looks the same is the same.
fn is_sure(stamp: Stamp, old: &Kept<'_>) -> bool {
    let unsure = u64::try_from(UNSURE.as_nanos()).unwrap_or(u64::MAX);
    stamp.changed.saturating_add(unsure) < old.written
}

/// How a file is, compared with what is kept of it.
enum Seen {
    /// With what it shows to others.
    Same(Stamp, Outline),
    Changed(Stamp, Arc<Parsed>),
}

/// Look at all files from outside, and at the text of those that look different.
fn see(sources: &[Source<'_>], old: &Kept<'_>) -> Result<Vec<Seen>> {
    let seen = source::parallel(sources, |source| {
        let stamp = Stamp::of(&source.path).unwrap_or(Stamp {
            length: 0,
            changed: u64::MAX,
        });
        let record = old.files.get(source.key.as_str());
        if let Some(record) = record.filter(|record| record.stamp == stamp && is_sure(stamp, old)) {
            return Ok(Seen::Same(stamp, record.shows()));
        }
        let text = Text::read(&source.path, &source.package.project.root)?;
        if let Some(record) = record.filter(|record| record.hash == text.hash) {
            return Ok(Seen::Same(stamp, record.shows()));
        }
        Ok(Seen::Changed(stamp, Arc::new(source.parse(text))))
    });
    seen.into_iter().collect()
}

/// What is known now, the keys behind which something else is, and whether there is something new to keep.
fn compare<'a>(
    sources: &[Source<'_>],
    seen: Vec<Seen>,
    old: &mut Kept<'a>,
) -> (Vec<Known<'a>>, Vec<Key>, bool) {
    let mut changed = Vec::new();
    let mut is_moved = false;
    let mut all = Vec::with_capacity(sources.len());
    for (source, seen) in sources.iter().zip(seen) {
        let record = old.files.remove(source.key.as_str());
        all.push(match (seen, record) {
            (Seen::Same(stamp, shows), record) => {
                let nothing = || Record::new(stamp, String::new(), &Outline::default());
                let mut record = record.unwrap_or_else(nothing);
                is_moved |= record.stamp != stamp || !is_sure(stamp, old);
                record.set_stamp(stamp);
                Known {
                    shows,
                    record,
                    parsed: None,
                }
            }
            (Seen::Changed(stamp, parsed), record) => {
                is_moved = true;
                let outline = Outline::of(&parsed.file);
                let before = record.map_or_else(Outline::default, |record| record.outline());
                changed.extend(before.changed(&outline));
                Known {
                    record: Record::new(stamp, parsed.hash.clone(), &outline),
                    shows: outline,
                    parsed: Some(parsed),
                }
            }
        });
    }
    // What is left is gone.
    is_moved |= !old.files.is_empty();
    let gone = old.files.values();
    changed.extend(gone.flat_map(|record| record.outline().changed(&Outline::default())));
    changed.sort_unstable();
    changed.dedup();
    (all, changed, is_moved)
}

/// The names of all packages.
fn names(package: &Package, sources: &[Source<'_>], known: &[Known<'_>]) -> Packages {
    let mut packages = Packages::default();
    for each in package.in_order() {
        plan::add_package(&mut packages, each);
    }
    for (source, known) in sources.iter().zip(known) {
        let names = known.shows.names.iter();
        // Tests see the names of their package and give it none.
        if source.origin != Origin::Test {
            packages.declare_names(source.package.name(), names.map(|(name, hidden)| (name, *hidden)));
        }
    }
    packages
}

/// Look at the files that are wanted and have no result, on every core.
fn look_again(sources: &[Source<'_>], known: &mut [Known<'_>], table: &ClassTable) -> Result<usize> {
    let due: Vec<(usize, &Source<'_>, Option<Arc<Parsed>>)> = sources
        .iter()
        .zip(known.iter())
        .enumerate()
        .filter(|(_, (source, known))| source.is_wanted && !known.record.is_checked())
        .map(|(at, (source, known))| (at, source, known.parsed.clone()))
        .collect();
    let found = source::parallel(&due, |(_, source, parsed)| -> Result<(Vec<Key>, Vec<Finding>)> {
        let parsed = match parsed {
            Some(parsed) => Arc::clone(parsed),
            None => Arc::new(source.read()?),
        };
        let checked = check_noting(&parsed.file, table);
        let findings = parsed.findings(&checked.diagnostics).findings;
        Ok((checked.reads, findings))
    });
    let places: Vec<usize> = due.iter().map(|(at, _, _)| *at).collect();
    for (at, found) in places.iter().zip(found) {
        if let Some(known) = known.get_mut(*at) {
            let (reads, findings) = found?;
            known.record.found(&reads, &findings);
        }
    }
    Ok(places.len())
}

fn of_file(source: &Source<'_>, known: &Known<'_>) -> Result<FileFindings> {
    let findings = known.record.findings();
    let text = match &known.parsed {
        // Nobody looks at a text in which nothing was found.
        _ if findings.is_empty() => String::new(),
        Some(parsed) => parsed.file.text.to_string(),
        None => Text::read(&source.path, &source.package.project.root)?.content,
    };
    Ok(FileFindings {
        path: source.shown.to_string(),
        text,
        findings,
    })
}
