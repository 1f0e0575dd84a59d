//! Whether a class may be made for a file that does not exist yet.

use beamtalk_compiler::module_name;

/// What is known about a class to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewClass<'a> {
    pub(crate) class: &'a str,
    pub(crate) path: &'a str,
    pub(crate) path_exists: bool,
    pub(crate) is_inside_project: bool,
    pub(crate) is_loaded: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NewClassFault {
    #[error("{path} exists already")]
    TargetExists { path: String },
    #[error("{path} is not in the project")]
    TargetOutsideProject { path: String },
    #[error("a file named {path} cannot hold the class {class}")]
    ClassNameMismatch { path: String, class: String },
    #[error("{class} is loaded already")]
    ClassAlreadyLoaded { class: String },
}

impl NewClassFault {
    /// The error kind on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TargetExists { .. } => "target_exists",
            Self::TargetOutsideProject { .. } => "target_outside_project",
            Self::ClassNameMismatch { .. } => "class_name_mismatch",
            Self::ClassAlreadyLoaded { .. } => "class_already_loaded",
        }
    }
}

pub(crate) fn check_new_class(new: NewClass) -> Result<(), NewClassFault> {
    let path = || new.path.to_owned();
    let class = || new.class.to_owned();
    let base = new.path.rsplit('/').next().unwrap_or_default();
    let is_source = base.strip_suffix(".bt").is_some_and(|stem| !stem.is_empty());
    if !new.is_inside_project {
        Err(NewClassFault::TargetOutsideProject { path: path() })
    } else if new.path_exists {
        Err(NewClassFault::TargetExists { path: path() })
    } else if !is_source || module_name(None, base) != module_name(None, new.class) {
        Err(NewClassFault::ClassNameMismatch {
            path: path(),
            class: class(),
        })
    } else if new.is_loaded {
        Err(NewClassFault::ClassAlreadyLoaded { class: class() })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{NewClass, check_new_class};

    fn verdict(change: impl FnOnce(&mut NewClass<'static>)) -> Result<(), &'static str> {
        let mut new = NewClass {
            class: "FanBelt",
            path: "src/FanBelt.bt",
            path_exists: false,
            is_inside_project: true,
            is_loaded: false,
        };
        change(&mut new);
        check_new_class(new).map_err(|fault| fault.kind())
    }

    #[test]
    fn a_new_class_needs_a_free_matching_path_in_the_project() {
        assert_eq!(verdict(|_| {}), Ok(()));
        assert_eq!(verdict(|new| new.path = "src/deep/fan_belt.bt"), Ok(()));
        assert_eq!(verdict(|new| new.path_exists = true), Err("target_exists"));
        assert_eq!(
            verdict(|new| new.is_inside_project = false),
            Err("target_outside_project")
        );
        assert_eq!(verdict(|new| new.path = "src/Fan.bt"), Err("class_name_mismatch"));
        assert_eq!(
            verdict(|new| new.path = "src/FanBelt"),
            Err("class_name_mismatch")
        );
        assert_eq!(verdict(|new| new.is_loaded = true), Err("class_already_loaded"));
    }
}
