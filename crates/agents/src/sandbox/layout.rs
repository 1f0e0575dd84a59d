//! What a session sees of the file system: an empty root into which granted paths are put, and
//! from which the places no session may see are taken out again. Pure: paths in, steps out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A path a session is given, free of symbolic links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) path: PathBuf,
    /// Why it may be given although it lies in a hidden place.
    pub(crate) claim: Claim,
}

/// How a path came to be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// A directory like any other; it may not lie in a hidden place.
    Place,
    /// The configuration names a secret store or something in it.
    Named,
    /// It is a part of the daemon's state that belongs to this session.
    Own,
}

/// A path a session is not shown, free of symbolic links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hidden {
    pub(crate) path: PathBuf,
    /// A secret store of the user is shown when the configuration names it; state never is.
    pub(crate) unless_named: bool,
}

/// One step of building the root, parents before children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Show(PathBuf),
    Hide(PathBuf),
}

impl Step {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Step::Show(path) | Step::Hide(path) => path,
        }
    }
}

/// The steps that show exactly what is granted; the path that would show a hidden place otherwise.
pub(crate) fn layout(grants: &[Grant], hidden: &[Hidden]) -> Result<Vec<Step>, PathBuf> {
    let mut shown: BTreeMap<&Path, bool> = hidden.iter().map(|place| (place.path.as_path(), false)).collect();
    for grant in grants {
        let inside = hidden
            .iter()
            .filter(|place| grant.path.starts_with(&place.path))
            .max_by_key(|place| place.path.components().count());
        let allowed = inside.is_none_or(|place| match grant.claim {
            Claim::Own => true,
            Claim::Named => place.unless_named,
            Claim::Place => false,
        });
        if !allowed {
            return Err(grant.path.clone());
        }
        shown.insert(&grant.path, true);
    }
    // Sorted by components: what lies around a path comes before it.
    let around = |path: &Path| {
        path.ancestors()
            .skip(1)
            .find_map(|above| shown.get(above).copied())
    };
    let mut steps: BTreeMap<&Path, bool> = BTreeMap::new();
    for (path, show) in &shown {
        match (show, around(path)) {
            (true, Some(true)) | (false, None | Some(false)) => {}
            (true, _) => {
                steps.insert(path, true);
            }
            (false, _) => {
                steps.insert(path, false);
                // Directories on the way are shown as mounts of their own, which cannot be renamed, also
                // those that were granted themselves: what is hidden by its path must stay where it is.
                let between = path
                    .ancestors()
                    .skip(1)
                    .take_while(|above| shown.get(above).copied().or_else(|| around(above)) == Some(true));
                steps.extend(between.map(|above| (above, true)));
            }
        }
    }
    let step = |(path, show): (&Path, bool)| {
        if show {
            Step::Show(path.to_owned())
        } else {
            Step::Hide(path.to_owned())
        }
    };
    Ok(steps.into_iter().map(step).collect())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use super::{Claim, Grant, Hidden, Step, layout};

    fn grant(path: &str, claim: Claim) -> Grant {
        Grant {
            path: PathBuf::from(path),
            claim,
        }
    }

    fn hidden() -> Vec<Hidden> {
        [
            ("/home/a/.beamtalk", false),
            ("/home/a/.ssh", true),
            ("/tmp/ns.a", false),
        ]
        .map(|(path, unless_named)| Hidden {
            path: PathBuf::from(path),
            unless_named,
        })
        .to_vec()
    }

    fn steps(grants: &[Grant]) -> Result<String, PathBuf> {
        let steps = layout(grants, &hidden())?;
        let words = steps.iter().map(|step| match step {
            Step::Show(path) => format!("+{}", path.display()),
            Step::Hide(path) => format!("-{}", path.display()),
        });
        Ok(words.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_session_at_home_sees_neither_state_nor_secrets_but_its_own() {
        let grants = [
            grant("/usr", Claim::Named),
            grant("/usr/lib", Claim::Named),
            grant("/home/a", Claim::Place),
            grant("/home/a/.beamtalk/agents/k/sessions/1/tmp", Claim::Own),
        ];
        assert_eq!(
            steps(&grants).unwrap(),
            "+/home/a -/home/a/.beamtalk +/home/a/.beamtalk/agents/k/sessions/1/tmp -/home/a/.ssh +/usr"
        );
    }

    #[test]
    fn the_way_to_a_hidden_place_cannot_be_moved() {
        let places = [Hidden {
            path: PathBuf::from("/home/a/.config/deep/beamtalk"),
            unless_named: false,
        }];
        let steps = layout(&[grant("/home/a", Claim::Place)], &places).unwrap();
        let show = |path: &str| Step::Show(PathBuf::from(path));
        assert_eq!(
            steps,
            [
                show("/home/a"),
                show("/home/a/.config"),
                show("/home/a/.config/deep"),
                Step::Hide(places[0].path.clone())
            ]
        );
    }

    #[test]
    fn nor_can_a_part_of_the_way_that_is_granted_itself() {
        let places = [Hidden {
            path: PathBuf::from("/home/a/.config/git/credentials"),
            unless_named: true,
        }];
        let grants = [
            grant("/home/a", Claim::Place),
            grant("/home/a/.config/git", Claim::Place),
        ];
        let steps = layout(&grants, &places).unwrap();
        let show = |path: &str| Step::Show(PathBuf::from(path));
        assert_eq!(
            steps,
            [
                show("/home/a"),
                show("/home/a/.config"),
                show("/home/a/.config/git"),
                Step::Hide(places[0].path.clone())
            ]
        );
    }

    #[test]
    fn what_is_not_granted_need_not_be_hidden() {
        let grants = [grant("/home/a/work", Claim::Place)];
        assert_eq!(steps(&grants).unwrap(), "+/home/a/work");
    }

    #[test]
    fn secrets_are_shown_by_name_and_state_is_never() {
        let home = grant("/home/a", Claim::Place);
        let key = grant("/home/a/.ssh/known_hosts", Claim::Named);
        assert_eq!(
            steps(&[home.clone(), key]).unwrap(),
            "+/home/a -/home/a/.beamtalk -/home/a/.ssh +/home/a/.ssh/known_hosts"
        );
        assert_eq!(
            steps(&[home, grant("/home/a/.ssh", Claim::Named)]).unwrap(),
            "+/home/a -/home/a/.beamtalk"
        );
        for bad in [
            grant("/home/a/.ssh", Claim::Place),
            grant("/home/a/.ssh/sub", Claim::Place),
            grant("/home/a/.beamtalk/workspaces/w", Claim::Named),
            grant("/tmp/ns.a", Claim::Place),
        ] {
            assert_eq!(steps(std::slice::from_ref(&bad)), Err(bad.path.clone()));
        }
    }

    /// Whether a file at `path` can be reached after the steps.
    fn reachable(steps: &[Step], path: &Path) -> bool {
        let last = steps.iter().rfind(|step| path.starts_with(step.path()));
        matches!(last, Some(Step::Show(_)))
    }

    proptest! {
        #[test]
        fn only_what_is_granted_is_seen_and_nothing_hidden_without_a_claim(
            granted in proptest::collection::vec(("(/[ab]){1,4}", 0_u8..3), 0..6),
            places in proptest::collection::vec(("(/[ab]){1,4}", any::<bool>()), 0..5),
            looked_at in "(/[ab]){1,5}",
        ) {
            let claims = [Claim::Place, Claim::Named, Claim::Own];
            let grants: Vec<Grant> = granted.iter().map(|(path, claim)| grant(path, claims[usize::from(*claim)])).collect();
            let hidden: Vec<Hidden> = places
                .iter()
                .map(|(path, unless_named)| Hidden { path: PathBuf::from(path), unless_named: *unless_named })
                .collect();
            let path = Path::new(&looked_at);
            match layout(&grants, &hidden) {
                Err(bad) => prop_assert!(hidden.iter().any(|place| bad.starts_with(&place.path))),
                Ok(steps) => {
                    // Parents before children, so that the last step around a path decides.
                    for (before, after) in steps.iter().zip(steps.iter().skip(1)) {
                        prop_assert!(before.path() < after.path());
                    }
                    let deepest = |paths: Vec<&PathBuf>| paths.into_iter().filter(|p| path.starts_with(p)).map(|p| p.components().count()).max();
                    let given = deepest(grants.iter().map(|g| &g.path).collect());
                    let taken = deepest(hidden.iter().map(|h| &h.path).collect());
                    // A grant at the very place of a hidden one was claimed, or refused above.
                    let expected = given.is_some() && given >= taken;
                    prop_assert_eq!(reachable(&steps, path), expected);
                }
            }
        }
    }
}
