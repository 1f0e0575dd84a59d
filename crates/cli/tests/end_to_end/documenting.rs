use std::fs;

use crate::support::Place;

#[test]
fn pages_are_written_and_those_of_gone_classes_removed() {
    let place = Place::with_project();
    place.write(
        "src/Orbit.bt",
        "/// A path. <script>alert(1)</script>\nValue subclass: Orbit\n\n  /// Answer it.\n  period => 3\n",
    );
    place.write("src/Integer+Half.bt", "Integer >> half => self / 2\n");
    let done = place.run(&["doc"]).expect_code(0);
    assert!(done.stdout.ends_with("pages in docs/api/\n"), "{}", done.stdout);
    let page = place.read("docs/api/Orbit.html");
    assert!(
        page.contains("&lt;script&gt;alert(1)") && !page.contains("<script"),
        "{page}"
    );
    assert!(page.contains("source/src/Orbit.bt.html#L2"), "{page}");
    assert!(page.contains("Inherited methods"), "{page}");
    assert!(place.read("docs/api/Integer.html").contains("half"));
    assert!(place.read("docs/api/index.html").contains("Orbit >> period"));
    assert!(!place.directory().join("docs/api/String.html").exists());
    // What somebody else put there stays.
    place.write("docs/api/Mine.html", "mine");
    fs::remove_file(place.directory().join("src/Orbit.bt")).unwrap();
    place.run(&["doc", "--json"]).expect_code(0);
    assert!(!place.directory().join("docs/api/Orbit.html").exists());
    assert_eq!(place.read("docs/api/Mine.html"), "mine");
}

#[test]
fn a_site_has_library_and_guide() {
    let place = Place::with_project();
    place.write("docs/start.md", "# Start\n\nSee `String` and [more](more.md).\n");
    place.write("docs/more.md", "# More\n");
    place.run(&["doc", "--site", "--output", "out"]).expect_code(0);
    assert!(place.read("out/guide/start.html").contains("../String.html"));
    assert!(place.read("out/guide/start.html").contains("href=\"more.html\""));
    assert!(
        place
            .read("out/String.html")
            .contains("source/lib/String.bt.html#L")
    );
    assert!(place.read("out/index.html").contains("guide/start.html"));
    // The project's own package stands first, the library apart; every page shows both at its side.
    place.write(
        "src/Orbit.bt",
        "/// A path.\n///\n/// ```beamtalk\n/// Orbit new: 5   // => 1\n/// ```\nValue subclass: Orbit\n",
    );
    place.run(&["doc", "--site", "--output", "out"]).expect_code(0);
    for page in ["out/index.html", "out/guide/start.html", "out/String.html"] {
        let text = place.read(page);
        let own = text.find("Orbit.html\"").unwrap_or_else(|| panic!("{page}"));
        let library = text
            .find("<summary>Standard library")
            .unwrap_or_else(|| panic!("{page}"));
        assert!(own < library, "{page}");
    }
    let page = place.read("out/Orbit.html");
    assert!(page.contains("Orbit.html\" aria-current=\"page\""), "{page}");
    assert!(
        page.contains("<span class=\"t\">Orbit</span> new: <span class=\"n\">5</span>"),
        "{page}"
    );
    // The library is open where the reader is in it.
    assert!(page.contains("<details><summary>Standard library"), "{page}");
    assert!(
        place
            .read("out/String.html")
            .contains("<details open><summary>Standard library")
    );
}

#[test]
fn a_broken_file_fails_after_the_others_are_written() {
    let place = Place::with_project();
    place.write("src/Broken.bt", "Value subclass: Broken\n  one => (1\n");
    place.write("src/Whole.bt", "Value subclass: Whole\n  one => 1\n");
    let done = place.run(&["doc"]).expect_code(1);
    assert!(done.stderr.contains("src/Broken.bt:2"), "{}", done.stderr);
    assert!(place.directory().join("docs/api/Whole.html").is_file());
    place.run(&["doc", "nowhere"]).expect_code(2);
}

#[test]
fn outside_a_project_nothing_is_written() {
    let place = Place::with_project();
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().to_str().unwrap();
    for arguments in [&["doc", path][..], &["doc", path, "--site"]] {
        let done = place.run(arguments).expect_code(2);
        assert!(
            done.stderr.contains("there are no classes to document in "),
            "{}",
            done.stderr
        );
    }
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
}
