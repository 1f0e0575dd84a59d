//! The example with a supervisor of agents, written in the language.

use std::path::Path;

use crate::House;

#[test]
fn a_team_works_through_its_queue_although_an_agent_dies() {
    let house = House::with_agents();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/review-team");
    let (text, status) = house.0.run(&format!(
        "cp -r {}/. . && rm -rf _build && beamtalk test",
        example.display()
    ));
    assert!(status == 0 && text.contains("2 passed"), "{text}");
    // The third review ends its agent the first time, the fifth every time.
    house.check(
        r#"team := ReviewTeam supervise unwrap. team class
           answers := ReviewTeam review: #("echo first", "echo second", "test -e died || (touch died; kill -9 $PPID); echo third", "echo fourth", "exit 4", "sleep 1; echo sixth"). answers size
           (answers values collect: [:each | each trim]) asList sort
           (ReviewQueue named: #reviews) unwrap failures keys
           ((ReviewQueue named: #reviews) unwrap attemptsOf: "exit 4")
           (Agents all collect: [:each | each alias]) sort
           team stop"#,
        r#"ReviewTeam
            5
            #("first", "fourth", "second", "sixth", "third")
            #("exit 4")
            3
            #("reviewer1", "reviewer2", "reviewer3")
            nil"#,
    );
}
