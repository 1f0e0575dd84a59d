use proptest::prelude::*;

use super::*;

fn matches(pattern: &str, path: &str) -> bool {
    Pattern::new(pattern).unwrap().is_match(path)
}

#[test]
fn patterns_match_as_documented() {
    let table = [
        ("src/**/*.rs", "src/main.rs", true),
        ("src/*.rs", "src/net/tcp.rs", true),
        ("content/", "content/a/b.md", true),
        ("content/", "content", false),
        ("content", "content/a.md", false),
        ("content", "content", true),
        ("./lib/*.c", "lib/a.c", true),
        (".", "any/thing", true),
        ("./", "thing", true),
        ("a?c", "a/c", true),
        ("[!a]x", "bx", true),
        ("[^a]x", "ax", false),
        ("{a,b{c,d}}.txt", "bd.txt", true),
        ("a/**/x", "a/x", true),
        ("a/**/x", "a/b/c/x", true),
        ("a/**", "a/b/c", true),
        ("\\*.c", "*.c", true),
        ("\\*.c", "x.c", false),
        ("*.RS", "a.rs", false),
        ("*", ".hidden", true),
        ("/etc/passwd", "etc/passwd", false),
        ("../x", "x", false),
    ];
    for (pattern, path, expected) in table {
        assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
    }
}

#[test]
fn version_control_is_left_alone_unless_named() {
    assert!(!matches("**/*", ".git/index"));
    assert!(!matches("**/*", "sub/.git/index"));
    assert!(matches(".git/HEAD", ".git/HEAD"));
    assert!(matches(".git/refs/*", ".git/refs/heads/main"));
    assert!(!matches("a/*", "a/.hg/x"));
    assert!(matches("**/*", ".gitignore"));
    assert!(!Pattern::new("**/*").unwrap().can_match_below(".git"));
    assert!(Pattern::new(".git/refs/*").unwrap().can_match_below(".git/refs"));
}

#[test]
fn only_directories_that_can_hold_a_match_are_entered() {
    let table = [
        ("src/*.rs", "src/deep/er", true),
        ("src/*.rs", "lib", false),
        ("a/b.txt", "a", true),
        ("a/b.txt", "a/b.txt", false),
        ("a/b.txt", "", false),
        ("a/b*/c", "a/x", false),
        ("a/b*/c", "a/bx", true),
        ("a/b*/c", "a", true),
        ("src/[ab].txt", "src", true),
        ("src/[ab].txt", "src/x", false),
        ("dir/", "dir", true),
        ("dir/", "dir/x", true),
        ("dir/", "dirt", false),
        ("*.c", "", true),
        ("*.c", "x/y", true),
        ("a*", "b", false),
    ];
    for (pattern, directory, expected) in table {
        assert_eq!(
            Pattern::new(pattern).unwrap().can_match_below(directory),
            expected,
            "{pattern} below {directory}"
        );
    }
}

fn groups(text: &str) -> Groups {
    let text = format!("{text}\n[workflow.w]\nsteps = [{{ action = \"notify_reload\" }}]\n");
    let loaded = crate::config::check(
        std::path::Path::new("/tmp/devloop.toml"),
        &text,
        crate::config::RemoteBind::Refuse,
    );
    Groups::new(&loaded.valid().unwrap())
}

#[test]
fn targets_below_a_recursive_one_are_merged() {
    let groups = groups(
        "watch.a = { paths = [\"src/\", \"src/net/*.rs\", \"go\", \"src\"], workflow = \"w\" }\n\
         watch.b = { paths = [\"x/y.txt\", \"go\"], workflow = \"w\" }",
    );
    let targets: Vec<_> = groups
        .targets()
        .into_iter()
        .map(|target| (target.path, target.recursive))
        .collect();
    assert_eq!(
        targets,
        [
            ("go".into(), false),
            ("src".into(), true),
            ("x/y.txt".into(), false)
        ]
    );
}

#[test]
fn ignored_directories_are_not_entered() {
    let groups = groups(
        "ignore = [\"target/\", \"**/node_modules/**\"]\n\
         watch.a = { paths = [\"**/*\"], workflow = \"w\", ignore = [\"*.log\", \"out\"] }",
    );
    assert!(!groups.can_match_below("target"));
    assert!(!groups.can_match_below("target/debug"));
    assert!(!groups.can_match_below("web/node_modules"));
    assert!(!groups.can_match_below("out"));
    assert!(groups.can_match_below("src"));
    assert!(!groups.is_match("a/b.log"));
    assert!(!groups.is_match("web/node_modules/x/y.js"));
    assert!(!groups.is_match("out/deep/file"));
    assert!(groups.is_match("src/a.rs"));
}

proptest! {
    #[test]
    fn any_text_is_a_pattern_or_an_error(text in ".{0,40}", path in "[a-z./]{0,20}") {
        if let Ok(pattern) = Pattern::new(&text) {
            // What matches must also be found: its directory is one the loop enters.
            if pattern.is_match(&path) && !path.is_empty() && !path.contains("//")
                && !path.starts_with('/') && !path.ends_with('/')
                && !path.split('/').any(|segment| segment == "." || segment == "..") {
                prop_assert!(pattern.can_match_below(parent(&path)), "{text} on {path}");
            }
        }
    }
}
