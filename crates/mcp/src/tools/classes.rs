//! Classes: their list, their source, who uses what.

use beamtalk_wire::requests::{self, NavKind};
use beamtalk_wire::{Side, answers};

pub(crate) use super::parts::Nothing;
use super::parts::{input, output, page};
use super::{Context, Failure};
use crate::data::Data;
use crate::host::{Host, HostError, PackageClass, PackageRow, failure};

input! {
    ListClasses {
        ;
        /// `user`, `stdlib`, or a superclass.
        filter: String,
        /// How many; 200 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
        limit: u64,
        /// The `next_cursor` of the page before.
        cursor: String,
    }
}

output! {
    ClassRow {
        name: String,
        ;
        superclass: String,
        doc: Data,
    }
}

output! {
    ClassList {
        classes: Vec<ClassRow>,
        ;
        next_cursor: String,
    }
}

fn first_line(text: &str) -> &str {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
}

pub(crate) async fn list_classes<H: Host>(
    context: &Context<'_, H>,
    input: ListClasses,
) -> Result<ClassList, Failure> {
    let request = requests::ListClasses { filter: input.filter };
    let mut all = context.ask(&request).await?.answer.class_list;
    all.sort_by(|one, other| one.name.cmp(&other.name));
    // A cursor is the last name that was seen.
    if let Some(cursor) = &input.cursor {
        all.retain(|class| class.name > *cursor);
    }
    let limit = usize::try_from(input.limit.unwrap_or(200)).unwrap_or(usize::MAX);
    let has_more = all.len() > limit;
    all.truncate(limit);
    let next_cursor = all.last().filter(|_| has_more).map(|class| class.name.clone());
    let one = |class: answers::ClassSummary| ClassRow {
        name: class.name,
        superclass: class.superclass,
        doc: class
            .doc
            .as_deref()
            .map(first_line)
            .filter(|line| !line.is_empty())
            .map(Data::new),
    };
    Ok(ClassList {
        classes: all.into_iter().map(one).collect(),
        next_cursor,
    })
}

output! {
    PackageInfo {
        name: String,
        version: String,
        /// `project`, `built in`, a path or a repository.
        source: String,
        dependencies: Vec<String>,
    }
}

output! {
    Packages {
        packages: Vec<PackageInfo>,
    }
}

pub(crate) async fn list_packages<H: Host>(
    context: &Context<'_, H>,
    _: Nothing,
) -> Result<Packages, Failure> {
    let one = |package: PackageRow| PackageInfo {
        name: package.name,
        version: package.version,
        source: package.source,
        dependencies: package.dependencies,
    };
    let found = context.host.packages().await?;
    Ok(Packages {
        packages: found.into_iter().map(one).collect(),
    })
}

input! {
    OfPackage {
        /// A package; list_packages names them.
        package: String,
    }
}

pub(crate) async fn package_classes<H: Host>(
    context: &Context<'_, H>,
    input: OfPackage,
) -> Result<ClassList, Failure> {
    let Some(mut found) = context.host.package_classes(&input.package).await? else {
        let shown = beamtalk_wire::escape(&input.package.chars().take(64).collect::<String>());
        let error = failure("not_found", format!("there is no package '{shown}' here"));
        return Err(Failure::Error(Box::new(error.hint("list_packages names them"))));
    };
    found.sort();
    let one = |(name, superclass, doc): PackageClass| ClassRow {
        name,
        superclass,
        doc: doc
            .as_deref()
            .map(first_line)
            .filter(|line| !line.is_empty())
            .map(Data::new),
    };
    Ok(ClassList {
        classes: found.into_iter().map(one).collect(),
        next_cursor: None,
    })
}

input! {
    ReadSource {
        /// A class, such as `Lamp`.
        class: String,
        ;
        /// One of its methods, such as `at:put:`; the whole class if absent.
        selector: String,
        /// `instance` if absent.
        side: Side,
    }
}

output! {
    Source {
        source: Data,
        /// `both`, `static` or `runtime`: whether file and memory have it.
        origin: String,
        /// Its file has something else, or there is none.
        disk_differs: bool,
        ;
        /// The comment of a method; it stays where it is when the method is saved.
        doc: Data,
        signature: Data,
        file: String,
        line: u64,
    }
}

pub(crate) async fn read_source<H: Host>(
    context: &Context<'_, H>,
    input: ReadSource,
) -> Result<Source, Failure> {
    let Some(selector) = &input.selector else {
        let whole = whole(context.host, &input.class).await?;
        let definition = definition(context.host, &input.class).await?;
        return Ok(Source {
            origin: definition.origin,
            disk_differs: definition.disk_differs.unwrap_or(true),
            doc: None,
            signature: None,
            file: whole.source_file.clone(),
            line: whole.line,
            source: Data::new(written(whole)),
        });
    };
    let places = places(context.host, &input.class).await?;
    let side = input.side.unwrap_or_default();
    let found = method(context.host, &input.class, selector, side).await?;
    let Some(source) = found.source else {
        let error = failure("no_source", format!("{}>>{selector} has no source", input.class));
        return Err(error.into());
    };
    let line = places
        .methods
        .iter()
        .find(|method| method.selector == *selector && method.side == side);
    Ok(Source {
        source: Data::new(source),
        origin: found.origin,
        disk_differs: found.disk_differs.unwrap_or(true),
        doc: found.doc.map(Data::new),
        signature: found.signature.map(Data::new),
        file: places.file,
        line: line.and_then(|method| method.line),
    })
}

/// Where the methods of a class are.
struct Places {
    file: Option<String>,
    methods: Vec<answers::MethodPlace>,
}

async fn places<H: Host>(host: &H, class: &str) -> Result<Places, HostError> {
    let request = requests::Info {
        symbol: class.to_owned(),
    };
    let file = match host.ask(&request).await?.answer.info {
        answers::SymbolInfo::Class(info) => info.source,
        _ => None,
    };
    let request = requests::Methods {
        class: class.to_owned(),
    };
    let methods = host.ask(&request).await?.answer.methods;
    Ok(Places { file, methods })
}

async fn definition<H: Host>(
    host: &H,
    class: &str,
) -> Result<answers::BrowseClassDefinitionAnswer, HostError> {
    let request = requests::BrowseClassDefinition {
        class: class.to_owned(),
    };
    Ok(host.ask(&request).await?.answer)
}

pub(crate) async fn method<H: Host>(
    host: &H,
    class: &str,
    selector: &str,
    side: Side,
) -> Result<answers::BrowseMethodSourceAnswer, HostError> {
    let request = requests::BrowseMethodSource {
        class: class.to_owned(),
        selector: selector.to_owned(),
        side: Some(side),
    };
    Ok(host.ask(&request).await?.answer)
}

async fn whole<H: Host>(host: &H, class: &str) -> Result<answers::BrowseClassAnswer, HostError> {
    let request = requests::BrowseClass {
        class: class.to_owned(),
    };
    Ok(host.ask(&request).await?.answer)
}

/// The head of a class with its comment and state.
pub(crate) async fn head_source<H: Host>(host: &H, class: &str) -> Result<String, HostError> {
    let found = definition(host, class).await?;
    Ok(commented(found.comment.as_deref(), found.definition.trim_end()))
}

/// A source with the comment that belongs to it.
fn commented(comment: Option<&str>, source: &str) -> String {
    let comment = comment.map(str::trim).filter(|comment| !comment.is_empty());
    match comment.filter(|_| !source.trim_start().starts_with("///")) {
        None => source.to_owned(),
        Some(comment) => {
            let indent: String = source.chars().take_while(|letter| *letter == ' ').collect();
            let mut text = String::new();
            for line in comment.lines() {
                text.push_str(format!("{indent}/// {line}").trim_end());
                text.push('\n');
            }
            text + source
        }
    }
}

pub(crate) async fn class_source<H: Host>(host: &H, class: &str) -> Result<String, HostError> {
    Ok(written(whole(host, class).await?))
}

/// A class as it runs: its head, then its methods in the order of their lines.
fn written(mut class: answers::BrowseClassAnswer) -> String {
    let mut text = commented(class.comment.as_deref(), class.definition.trim_end());
    class.methods.sort_by(|one, other| {
        (one.line.unwrap_or(u64::MAX), &one.selector).cmp(&(other.line.unwrap_or(u64::MAX), &other.selector))
    });
    for method in class.methods {
        if let Some(source) = method.source {
            text.push_str("\n\n");
            text.push_str(&commented(method.doc.as_deref(), &indented(&source)));
        }
    }
    text.push('\n');
    text
}

/// A method as it stands in its class.
fn indented(source: &str) -> String {
    if source.starts_with(' ') {
        return source.trim_end().to_owned();
    }
    let lines = source.trim_end().lines().enumerate();
    let shown = lines.map(
        |(number, line)| match (number, line.is_empty() || line.starts_with(' ')) {
            (0, _) | (_, false) => format!("  {line}"),
            (_, true) => line.to_owned(),
        },
    );
    shown.collect::<Vec<_>>().join("\n")
}

input! {
    FindCode {
        /// What to find.
        kind: NavKind,
        /// The selector, or for `references` the class.
        name: String,
        ;
        /// How many sites; 100 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
        limit: u64,
    }
}

output! {
    CodeSite {
        class: String,
        side: Side,
        ;
        method: String,
        file: String,
        line: u64,
    }
}

output! {
    Sites {
        sites: Vec<CodeSite>,
        total: u64,
    }
}

pub(crate) async fn find_code<H: Host>(context: &Context<'_, H>, input: FindCode) -> Result<Sites, Failure> {
    let (selector, class) = match input.kind {
        NavKind::References => (None, Some(input.name)),
        NavKind::Senders | NavKind::Implementors => (Some(input.name), None),
    };
    let request = requests::NavQuery {
        kind: input.kind,
        selector,
        class,
    };
    let all = context.ask(&request).await?.answer.sites;
    let one = |site: answers::Site| CodeSite {
        class: site.class,
        side: if site.class_side {
            Side::Class
        } else {
            Side::Instance
        },
        method: site.method,
        file: site.source_file,
        line: site.line,
    };
    Ok(Sites {
        total: all.len() as u64,
        sites: page(all.into_iter().map(one).collect(), input.limit, 100),
    })
}
