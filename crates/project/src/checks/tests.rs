use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::lock::Locking;
use crate::{Project, Silent};

/// A project on disk.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        place.write(
            "beamtalk.toml",
            "[package]\nname = \"demo\"\nversion = \"0.1.0\"\n",
        );
        place.write("src/Base.bt", BASE);
        place.write(
            "src/User.bt",
            "Object subclass: User\n  class a: b :: Base => b next + b label\n",
        );
        place.write(
            "src/Alone.bt",
            "Object subclass: Alone\n  class a => 3 frobnicate\n",
        );
        place.write("src/Parts.bt", "Base >> twice => self next + self next\n");
        place.write(
            "test/BaseTest.bt",
            "TestCase subclass: BaseTest\n  testA => Base new next\n",
        );
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        crate::files::write_atomic(&path, text.as_bytes()).unwrap();
    }

    fn check(&self, below: Option<&str>) -> Checks {
        let project = Project::at(&self.path("")).unwrap().unwrap();
        let package = Package::resolve(&mut Silent, project, Locking::Follow).unwrap();
        check(&package, below.map(|below| self.path(below)).as_deref()).unwrap()
    }

    fn kept(&self) -> PathBuf {
        self.path("_build/dev/checks")
    }

    /// The second file, with what changed since the first was written.
    fn later(&self) -> PathBuf {
        self.path("_build/dev/checks.later")
    }

    /// How many files were looked at; what was found is what a run from nothing finds.
    fn looked_at(&self) -> usize {
        let again = self.check(None);
        let (kept, later) = (fs::read(self.kept()).unwrap(), fs::read(self.later()).ok());
        fs::remove_file(self.kept()).unwrap();
        let fresh = self.check(None);
        assert_eq!(shown(&again), shown(&fresh));
        assert!(!self.later().exists(), "what belongs to no first file goes");
        crate::files::write_atomic(&self.kept(), &kept).unwrap();
        if let Some(later) = later {
            crate::files::write_atomic(&self.later(), &later).unwrap();
        }
        again.looked_at
    }
}

const BASE: &str = "Value subclass: Base\n  field: size :: Integer = 0\n  next -> Integer => self.size + 1\n  label => \"a\"\n";

fn shown(checks: &Checks) -> Vec<String> {
    let files = checks.findings.iter();
    files
        .map(|file| format!("{} {:?}", file.path, file.findings))
        .collect()
}

/// Between two runs only what changed, and what rests on it, is looked at; the findings are those of a run from nothing.
#[test]
fn only_what_a_change_reaches_is_looked_at() {
    let place = Place::new();
    assert_eq!(place.looked_at(), 5);
    assert_eq!(place.looked_at(), 0);
    place.write("src/Base.bt", &BASE.replace("+ 1", "+ 2"));
    assert_eq!(place.looked_at(), 1);
    // Its own file, the one that sends it, the test and the extension.
    place.write("src/Base.bt", &BASE.replace("next -> Integer", "next -> String"));
    assert_eq!(place.looked_at(), 4);
    // A name that was missing.
    place.write("src/Base.bt", &format!("{BASE}  frobnicate => 1\n"));
    assert!(place.looked_at() >= 1);
    place.write("src/Parts.bt", "Integer >> frobnicate => 1\n");
    assert!(
        place.looked_at() >= 2,
        "who sends it to an Integer is looked at again"
    );
    fs::remove_file(place.path("src/Base.bt")).unwrap();
    assert!(place.looked_at() >= 2);
    assert_eq!(place.looked_at(), 0);
}

/// A file that is written again with the same text, or is as long as before, is not taken for another or the same.
#[test]
fn times_and_lengths_do_not_mislead() {
    let place = Place::new();
    place.check(None);
    place.write("src/Base.bt", BASE);
    assert_eq!(place.looked_at(), 0);
    // As long, and perhaps within the same tick of the clock.
    place.write(
        "src/Alone.bt",
        "Object subclass: Alone\n  class a => 3 frobnicatf\n",
    );
    let found = place.check(None);
    assert_eq!(found.looked_at, 1);
    assert!(shown(&found).iter().any(|file| file.contains("frobnicatf")));
}

/// What is asked for below a path is looked at there; the rest stays due.
#[test]
fn a_part_can_be_looked_at() {
    let place = Place::new();
    let part = place.check(Some("src/Alone.bt"));
    assert_eq!((part.findings.len(), part.looked_at), (1, 1));
    assert_eq!(place.looked_at(), 4);
}

/// Whatever became of the file with the results, a run says what it would say without it.
#[test]
fn damaged_results_are_as_good_as_none() {
    let place = Place::new();
    let fresh = place.check(None);
    let whole = fs::read(place.kept()).unwrap();
    for cut in [0, 1, 20, whole.len() / 2, whole.len() - 1] {
        crate::files::write_atomic(&place.kept(), &whole[..cut]).unwrap();
        assert_eq!(shown(&place.check(None)), shown(&fresh), "cut at {cut}");
    }
    for at in (0..whole.len()).step_by(whole.len() / 50) {
        let mut bent = whole.clone();
        bent[at] ^= 0x55;
        crate::files::write_atomic(&place.kept(), &bent).unwrap();
        assert_eq!(shown(&place.check(None)), shown(&fresh), "bent at {at}");
    }
}

/// What changed since the first file of results was written is in a second one, which stays small and means nothing
/// without the first: whichever of the two is damaged or from another time, a run says what it would say without both.
#[test]
fn what_changed_is_kept_apart_until_it_is_much() {
    let place = Place::new();
    for number in 0..100 {
        place.write(
            &format!("src/Part{number}.bt"),
            &format!("Object subclass: Part{number}\n  class a => {number}\n"),
        );
    }
    place.check(None);
    let first = fs::read(place.kept()).unwrap();
    let change = |number: usize| {
        let text = format!("Object subclass: Part{number}\n  class a => {number} frobnicate\n");
        place.write(&format!("src/Part{number}.bt"), &text);
    };
    change(3);
    assert_eq!(place.looked_at(), 1);
    change(4);
    fs::remove_file(place.path("src/Part5.bt")).unwrap();
    assert_eq!(place.looked_at(), 1);
    assert_eq!(place.looked_at(), 0);
    assert_eq!(fs::read(place.kept()).unwrap(), first, "it is not written again");
    let later = fs::read(place.later()).unwrap();
    assert!(
        later.len() < first.len() / 4,
        "{} of {}",
        later.len(),
        first.len()
    );
    // A file that comes back.
    change(5);
    assert_eq!(place.looked_at(), 1);
    let expected = shown(&place.check(None));
    let later = fs::read(place.later()).unwrap();
    for at in (0..later.len()).step_by(later.len() / 30) {
        let mut bent = later.clone();
        bent[at] ^= 0x55;
        for bytes in [&bent[..], &later[..at]] {
            crate::files::write_atomic(&place.kept(), &first).unwrap();
            crate::files::write_atomic(&place.later(), bytes).unwrap();
            assert_eq!(shown(&place.check(None)), expected, "at {at}");
        }
    }
    // The second file of another first one.
    fs::remove_file(place.kept()).unwrap();
    place.check(None);
    crate::files::write_atomic(&place.later(), &later).unwrap();
    change(6);
    assert_eq!(place.looked_at(), 1);
    // Much is written anew.
    (10..60).for_each(change);
    assert_eq!(place.check(None).looked_at, 50);
    assert!(!place.later().exists());
    assert_eq!(place.looked_at(), 0);
}

/// Whatever stands in the place of a file that a run keeps for the next, the next ends with the same findings.
#[test]
fn odd_things_in_the_place_of_results_are_as_good_as_none() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let place = Place::new();
    let fresh = place.check(None);
    let kept = place.kept();
    type Make = fn(&std::path::Path);
    let odd: [(&str, Make); 6] = [
        ("a pipe", |path| {
            mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        }),
        ("a link to a pipe", |path| {
            let pipe = path.with_extension("pipe");
            drop(fs::remove_file(&pipe));
            mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
            std::os::unix::fs::symlink(pipe, path).unwrap();
        }),
        ("a file of 3 GiB", |path| {
            fs::File::create(path).unwrap().set_len(3 << 30).unwrap();
        }),
        ("a link to a device", |path| {
            std::os::unix::fs::symlink("/dev/zero", path).unwrap();
        }),
        ("a link to itself", |path| {
            std::os::unix::fs::symlink(path.file_name().unwrap(), path).unwrap();
        }),
        ("a directory", |path| fs::create_dir(path).unwrap()),
    ];
    for (name, make) in odd {
        fs::remove_file(&kept).unwrap();
        make(&kept);
        let again = place.check(None);
        assert_eq!((shown(&again), again.looked_at), (shown(&fresh), 5), "{name}");
        // All but a directory is replaced.
        if kept.is_dir() {
            fs::remove_dir(&kept).unwrap();
            place.check(None);
        }
        assert_eq!(place.check(None).looked_at, 0, "after {name}");
        // The same in the place of the second file.
        drop(fs::remove_file(place.later()));
        make(&place.later());
        assert_eq!(shown(&place.check(None)), shown(&fresh), "{name}, second");
        if place.later().is_dir() {
            fs::remove_dir(place.later()).unwrap();
        } else {
            fs::remove_file(place.later()).unwrap();
        }
    }
}

/// A class whose name another package has too is looked for under its whole name: who uses it is looked at when it
/// changes.
#[test]
fn a_name_of_two_packages_misleads_nobody() {
    let place = Place::new();
    place.write(
        "beamtalk.toml",
        "[package]\nname = \"demo\"\nversion = \"0.1.0\"\n\n[dependencies]\nparts = { path = \"parts\" }\n",
    );
    place.write(
        "parts/beamtalk.toml",
        "[package]\nname = \"parts\"\nversion = \"0.1.0\"\n",
    );
    place.write(
        "parts/src/Base.bt",
        "Value subclass: Base\n  other -> Integer => 1\n",
    );
    place.looked_at();
    assert_eq!(place.looked_at(), 0);
    place.write("src/Base.bt", &BASE.replace("next -> Integer", "next -> String"));
    assert!(place.looked_at() >= 4);
    place.write(
        "parts/src/Base.bt",
        "Value subclass: Base\n  other -> String => \"\"\n",
    );
    place.looked_at();
    assert_eq!(place.looked_at(), 0);
}
