//! The loop and the agents as objects of the image, against the real binary and real tmux.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and make its files"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    dead_code,
    reason = "the helpers of the agents' tests are more than these need"
)]

#[path = "house/agent_objects.rs"]
mod agent_objects;
#[path = "house/loop_objects.rs"]
mod loop_objects;
#[path = "house/review_team.rs"]
mod review_team;
#[path = "shared/runtime.rs"]
mod runtime;
#[path = "agents/support.rs"]
mod support;

use support::World;

/// A home with agents and a workspace; both are gone at the end.
struct House(World);

impl House {
    fn new() -> Self {
        House(World::new())
    }

    fn with_agents() -> Self {
        House(World::started())
    }

    /// What the prompt answers to these inputs, one per line.
    fn ask(&self, inputs: &str) -> String {
        let lines: Vec<&str> = inputs.lines().map(str::trim).collect();
        let script = format!("beamtalk repl <<'END'\n{}\nEND", lines.join("\n"));
        let (text, status) = self.0.run(&script);
        assert_eq!(status, 0, "{inputs}\n{text}");
        text
    }

    fn check(&self, inputs: &str, expected: &str) {
        // Warnings go to the other stream, which the shell joins with this one.
        let shown: Vec<String> = self
            .ask(inputs)
            .lines()
            .filter(|line| !line.starts_with("⚠ "))
            .map(str::to_owned)
            .collect();
        let shown = shown.join("\n");
        let matches = shown.lines().count() == expected.trim().lines().count()
            && shown
                .lines()
                .zip(expected.trim().lines())
                .all(|(shown, wanted)| shown.trim_end() == wanted.trim());
        assert!(matches, "{inputs}\nexpected:\n{}\ngot:\n{shown}", expected.trim());
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let (text, status) = self.0.run("beamtalk workspace stop --force");
        if status != 0 && !std::thread::panicking() {
            assert!(
                text.contains("not running") || text.contains("no workspace"),
                "{text}"
            );
        }
    }
}
