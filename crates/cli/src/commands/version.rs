//! `beamtalk version`: show, set or raise the version of a package.

use std::path::Path;

use beamtalk_project::manifest::{self, Manifest, edit};
use beamtalk_project::{Project, files};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The new version, X.Y.Z; or `bump`. Without it the version is shown.
    #[arg(value_name = "X.Y.Z | bump")]
    wanted: Option<String>,
    /// With `bump`: the part to raise.
    #[arg(value_enum)]
    part: Option<Part>,
}

/// A part of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    Patch,
    Minor,
    Major,
}

type Numbers = (u32, u32, u32);

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let project = Project::require(Path::new("."))?;
    let path = project.root.join(manifest::FILE_NAME);
    let text = files::read_source(&path)?;
    let old = Manifest::parse(&text, &path.display().to_string())?.version;
    let new = wanted(&old, arguments)?;
    if let Some(new) = &new {
        let changed = edit::set_version(&text, new).ok_or_else(|| {
            Fault::usage(
                "bad_manifest",
                format!("{}: no version to change", path.display()),
            )
        })?;
        files::write_atomic(&path, changed.as_bytes())?;
    }
    let version = new.as_ref().unwrap_or(&old);
    if terminal.is_json() {
        terminal.print(serde_json::json!({"version": version, "previous": new.is_some().then_some(&old)}))?;
    } else {
        terminal.print(version)?;
    }
    Ok(Exit::Success)
}

/// The version to write, if any.
fn wanted(old: &str, arguments: &Arguments) -> Result<Option<String>, Fault> {
    let usage = |message: String| Fault::usage("bad_version", message);
    let current = numbers(old).ok_or_else(|| usage(format!("'{old}' is not a version")))?;
    match (arguments.wanted.as_deref(), arguments.part) {
        (None, _) => Ok(None),
        (Some("bump"), Some(part)) => raise(current, part)
            .map(Some)
            .ok_or_else(|| usage(format!("{old} cannot be raised any further"))),
        (Some("bump"), None) => Err(usage(
            "which part? bump patch, bump minor or bump major".to_owned(),
        )),
        (Some(new), Some(_)) => Err(usage(format!("'{new}' takes no part; only `bump` does"))),
        (Some(new), None) => match numbers(new) {
            None => Err(usage(format!(
                "'{new}' is not a version: major.minor.patch, such as 0.1.0"
            ))),
            Some(wanted) if wanted <= current => Err(usage(format!(
                "{new} is not greater than the present version {old}"
            ))),
            Some(_) => Ok(Some(new.to_owned())),
        },
    }
}

fn raise((major, minor, patch): Numbers, part: Part) -> Option<String> {
    let (major, minor, patch) = match part {
        Part::Patch => (major, minor, patch.checked_add(1)?),
        Part::Minor => (major, minor.checked_add(1)?, 0),
        Part::Major => (major.checked_add(1)?, 0, 0),
    };
    Some(format!("{major}.{minor}.{patch}")).filter(|version| manifest::is_version(version))
}

fn numbers(version: &str) -> Option<Numbers> {
    if !manifest::is_version(version) {
        return None;
    }
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Part, wanted};

    fn try_version(version: Option<&str>, part: Option<Part>) -> Result<Option<String>, String> {
        let arguments = Arguments {
            wanted: version.map(str::to_owned),
            part,
        };
        wanted("1.2.9", &arguments).map_err(|fault| fault.message)
    }

    #[test]
    fn versions_only_grow() {
        assert_eq!(try_version(None, None), Ok(None));
        assert_eq!(try_version(Some("1.2.10"), None), Ok(Some("1.2.10".to_owned())));
        for bad in ["1.2.9", "1.2.8", "0.9.9", "2", "2.0", "02.0.0", "2.0.0-beta", "x"] {
            assert!(try_version(Some(bad), None).is_err(), "{bad}");
        }
    }

    #[test]
    fn bump_raises_one_part() {
        for (part, version) in [
            (Part::Patch, "1.2.10"),
            (Part::Minor, "1.3.0"),
            (Part::Major, "2.0.0"),
        ] {
            assert_eq!(
                try_version(Some("bump"), Some(part)),
                Ok(Some(version.to_owned()))
            );
        }
        assert!(try_version(Some("bump"), None).is_err());
        assert!(try_version(Some("2.0.0"), Some(Part::Patch)).is_err());
    }
}
