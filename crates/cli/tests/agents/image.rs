//! The running image as files: a real workspace, a real daemon, real files.

use std::time::{Duration, Instant};

use crate::support::World;

impl World {
    /// A world with a project whose workspace runs, and a daemon that serves it.
    pub(crate) fn with_workspace() -> Self {
        let world = World::new();
        world.project("");
        world.value("beamtalk workspace start");
        world.check("beamtalk agents start", "anvilsrv started successfully\n");
        world
    }

    /// A project in the working directory; `more` is appended to the class of its file.
    pub(crate) fn project(&self, more: &str) {
        let write = |name: &str, text: &str| {
            let path = self.path("work").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "beamtalk.toml",
            "[package]\nname = \"house\"\nversion = \"0.1.0\"\n",
        );
        let fan = "/// Moves air.\nActor subclass: Fan\n  state: speed = 0\n\n  /// How fast.\n  speed => self.speed\n\n  \
             faster => self.speed := self.speed + 1\n\n  class quick => (Fan spawn) faster\n";
        write("src/Fan.bt", &format!("{fan}{more}"));
    }
}

const LAMP: &str = "Actor subclass: Lamp\\n  state: on = false\\n\\n  isOn => self.on\\n\\n  press => self.on := self.on not\\n";

/// The example of the specification, line by line.
#[test]
fn methods_are_files() {
    let world = World::with_workspace();
    world.check(
        &format!("printf '{LAMP}' | beamtalk 9p write agent/classes/.new"),
        "",
    );
    world.check(
        "beamtalk 9p ls agent/classes/Lamp | tr '\\n' ' '; echo",
        ".class .definition .doc .error .info .source isOn press \n",
    );
    world.transcript(
        r"
        $ beamtalk 9p write agent/classes/Lamp/press 'press => self.on := (self.on not'
        beamtalk 9p: write agent/classes/Lamp/press: compile error: 1:…
        [1]
        $ beamtalk 9p read agent/classes/Lamp/.error
        1:33: …
        $ beamtalk 9p read agent/classes/Lamp/press
        press => self.on := self.on not
        $ beamtalk 9p write agent/classes/Lamp/isOn 'isOff => self.on not'
        beamtalk 9p: write agent/classes/Lamp/isOn: selector mismatch: file is isOn, source defines isOff
        [1]
        $ beamtalk 9p create agent/classes/Lamp/isOff; beamtalk 9p read agent/classes/Lamp/isOff
        beamtalk 9p: open agent/classes/Lamp/isOff: not found
        [1]
        ",
    );
    world.check(
        "beamtalk 9p write -c agent/classes/Lamp/isOff 'isOff => self.on not'
         beamtalk 9p rpc agent/eval 'Lamp spawn isOff'",
        "true\n",
    );
    world.check("beamtalk 9p read agent/classes/Lamp/.error", "");
    for bad in ["", "isOn => 1\nisOff => 2", "self.on"] {
        world.check(
            &format!("beamtalk 9p write agent/classes/Lamp/isOn '{bad}'"),
            "beamtalk 9p: write agent/classes/Lamp/isOn: expected one method definition\n[1]\n",
        );
    }
    // Each of these left the method as it was, and nothing in the log.
    world.transcript(
        r"
        $ beamtalk 9p read agent/changes/pending
        Lamp (new-class)
        Lamp>>isOff
        $ beamtalk 9p rm agent/classes/Lamp/isOff; beamtalk 9p rpc agent/eval 'Lamp spawn isOff'
        beamtalk 9p: read agent/eval: eval: …
        [1]
        $ beamtalk 9p write agent/classes/Nobody/isOn 'isOn => 1'
        beamtalk 9p: open agent/classes/Nobody/isOn: not found
        [1]
        $ beamtalk 9p rm agent/classes/Object
        beamtalk 9p: remove agent/classes/Object: permission denied
        [1]
        $ printf 'Lamp subclass: Bulb\n' | beamtalk 9p write agent/classes/.new; beamtalk 9p rm agent/classes/Lamp
        beamtalk 9p: remove agent/classes/Lamp: class has subclasses
        [1]
        $ beamtalk 9p rm agent/classes/Bulb && beamtalk 9p rm agent/classes/Lamp && beamtalk 9p ls agent/classes/Lamp
        beamtalk 9p: stat agent/classes/Lamp: not found
        [1]
        ",
    );
}

#[test]
fn an_evaluation_session_is_private_to_one_open_file() {
    let world = World::with_workspace();
    world.transcript(
        r#"
        $ beamtalk 9p rpc agent/eval '3 + 4'; beamtalk 9p rpc agent/eval 'x := 5'; beamtalk 9p rpc agent/eval 'x'
        7
        5
        beamtalk 9p: read agent/eval: eval: …
        [1]
        $ beamtalk 9p rpc agent/eval.json '[:a | a * 2] value: 21' | jq -c '[.ok,.value]'
        [true,"42"]
        $ beamtalk 9p rpc agent/eval.json 'Transcript show: "hi". 1/0' | jq -c '[.ok,.output,.error.kind]'
        [false,"hi","type_error"]
        "#,
    );
    // An error is of its own class, not of the receiver's.
    for (code, said) in [
        ("nil foo", "RuntimeError: UndefinedObject does not understand …"),
        ("1 / 0", "TypeError: …"),
        ("Error signal: \"x\"", "Error: x"),
        ("Fan new", "InstantiationError: …"),
        ("3 +", "CompileError: …"),
    ] {
        world.check(
            &format!("beamtalk 9p rpc agent/eval '{code}'"),
            &format!("beamtalk 9p: read agent/eval: eval: {said}\n[1]\n"),
        );
    }
    // Variables stay while the file is open.
    world.check(
        "printf 'x := 5\\nx + 1\\n' | beamtalk 9p rdwr agent/eval",
        "5\n6\n",
    );
    world.check(
        "beamtalk 9p rpc agent/eval '//timeout 50
[true] whileTrue: []'",
        "beamtalk 9p: read agent/eval: eval timeout\n[1]\n",
    );
    // Giving the read up stops the evaluation; the workspace goes on.
    world.check(
        "timeout -s INT 1 beamtalk 9p rpc agent/eval '[true] whileTrue: []'; beamtalk 9p rpc agent/eval '1'",
        "1\n",
    );
    world.until("test $(beamtalk workspace sessions --json 2>/dev/null | jq '[.sessions[]? | select(.busy)] | length') = 0");
}

#[test]
fn what_files_show_of_a_class_is_what_is_loaded() {
    let world = World::with_workspace();
    world.check(
        "beamtalk 9p read agent/classes/Fan/speed; echo; beamtalk 9p read agent/classes/Fan/.class/quick; echo",
        "/// How fast.\nspeed => self.speed\nquick => (Fan spawn) faster\n",
    );
    world.check(
        "beamtalk 9p read agent/classes/Fan/.definition; beamtalk 9p read agent/classes/Fan/.doc",
        "Actor subclass: Fan\n  state: speed = 0\nMoves air.\n",
    );
    world.check(
        "beamtalk 9p read agent/classes/Fan/.info | jq -c '[.name,.superclass,.kind,.file,.package,.flushable,.methods,.class_methods]'",
        "[\"Fan\",\"Actor\",\"actor\",\"src/Fan.bt\",\"house\",true,[\"faster\",\"speed\"],[\"quick\"]]\n",
    );
    // What is read can be written back, and nothing is pending then but that it was written.
    world.check(
        "for f in speed faster .class/quick .source; do
           beamtalk 9p read agent/classes/Fan/$f > $W/f && beamtalk 9p write agent/classes/Fan/$f < $W/f || exit 1
           beamtalk 9p read agent/classes/Fan/$f | cmp - $W/f || exit 2
         done
         beamtalk 9p write agent/classes/Fan/.class/quick 'class quick => 7' && beamtalk 9p rpc agent/eval 'Fan quick'
         beamtalk 9p write agent/classes/Fan/.class/quick 'class quick => 7)'",
        "7\nbeamtalk 9p: write agent/classes/Fan/.class/quick: compile error: 1:17: …\n[1]\n",
    );
    world.check(
        "beamtalk 9p write agent/classes/Fan/.source 'Actor subclass: Other'",
        "beamtalk 9p: write agent/classes/Fan/.source: invalid source: file is of Fan, source defines Other\n[1]\n",
    );
}

#[test]
fn a_write_reaches_living_actors_the_log_and_the_file() {
    let world = World::with_workspace();
    world.value("beamtalk 9p rpc agent/eval '(Fan spawn) registerAs: #cooler'");
    world.check("beamtalk 9p rpc agent/actors/cooler/send 'faster'", "1\n");
    world.check(
        "beamtalk 9p write agent/classes/Fan/faster 'faster => self.speed := self.speed + 10'
         beamtalk 9p rpc agent/actors/cooler/send 'faster'; beamtalk 9p read agent/actors/cooler/state",
        "11\nspeed: 11\n",
    );
    world.check(
        "cd agent 2>/dev/null; p=$(beamtalk 9p ls agent/actors | tail -1); beamtalk 9p read agent/actors/$p/class
         beamtalk 9p read agent/actors/$p/name; beamtalk 9p read agent/actors/$p/info | jq -r .class",
        "Fan\ncooler\nFan\n",
    );
    world.transcript(
        r#"
        $ beamtalk 9p read agent/changes/log | jq -c '[.seq,.class,.selector,.side,.kind,.author,.flushable,.file,.active]'
        [1,"Fan","faster","instance","instance","human",true,"src/Fan.bt",true]
        $ beamtalk 9p read agent/changes/diff | grep '^[+-]  '
        -  faster => self.speed := self.speed + 1
        +  faster => self.speed := self.speed + 10
        $ beamtalk 9p rpc agent/changes/ctl flush; beamtalk 9p read agent/changes/pending; grep -c '+ 10' src/Fan.bt
        flushed 1 method across 1 file
        1
        "#,
    );
    world.check(
        "beamtalk 9p write agent/classes/Fan/faster 'faster => 3'; beamtalk 9p rpc agent/changes/ctl 'revert 2'
         beamtalk 9p read agent/classes/Fan/faster; echo; beamtalk 9p rpc agent/changes/ctl bogus",
        "reverted Fan>>faster\nfaster => self.speed := self.speed + 10\n\
         beamtalk 9p: write agent/changes/ctl: unknown command\n[1]\n",
    );
    // The disk changed under a pending change: the flush leaves both alone.
    world.check(
        "beamtalk 9p write agent/classes/Fan/faster 'faster => 4'; sed -i 's/+ 10/+ 20/' src/Fan.bt
         beamtalk 9p rpc agent/changes/ctl flush; grep -c '+ 20' src/Fan.bt; beamtalk 9p read agent/changes/pending",
        "conflict: src/Fan.bt (external_edit)\n1\nFan>>faster\n",
    );
    world.check(
        "beamtalk 9p write agent/actors/cooler/ctl stop; beamtalk 9p read agent/actors/cooler/class",
        "beamtalk 9p: open agent/actors/cooler/class: not found\n[1]\n",
    );
}

#[test]
fn transcript_and_change_log_can_be_followed() {
    let world = World::with_workspace();
    world.check(
        "beamtalk 9p write agent/transcript 'one {x} \"two\" \\three
'; beamtalk 9p read agent/transcript",
        "one {x} \"two\" \\three\n",
    );
    world.check(
        "(echo 'tail 3'; exec sleep 60 2>/dev/null) | beamtalk 9p con agent/transcript.follow > $W/told & echo $! > $W/p1
         (exec sleep 60 2>/dev/null) | beamtalk 9p con agent/changes/follow > $W/log & echo $! > $W/p2
         n=0; until grep -qs ee $W/told || test $n = 300; do sleep 0.1; n=$((n+1)); done
         beamtalk 9p write agent/transcript 'four'
         beamtalk 9p write agent/classes/Fan/faster 'faster => 1'
         n=0; until grep -qs four $W/told && grep -qs faster $W/log || test $n = 300; do sleep 0.1; n=$((n+1)); done
         kill $(cat $W/p1 $W/p2) 2>/dev/null; cat $W/told; echo; jq -r .selector $W/log",
        "ee\nfour\nfaster\n",
    );
    world.check(
        "beamtalk 9p read agent/events.json | jq -c 'select(.source==\"workspace\") | [.type,.data.class,.data.selector,.data.author]'",
        "[\"MethodChanged\",\"Fan\",\"faster\",\"human\"]\n",
    );
}

/// However much was written before, a daemon that comes then has the end of it, and all the rest of the workspace.
#[test]
fn a_long_transcript_does_not_keep_the_workspace_away() {
    let world = World::new();
    world.project("");
    world.value("beamtalk workspace start");
    world.check(
        "for n in 1 2 3 4 5 6 7 8; do beamtalk eval '20 timesRepeat: [Transcript showLine: (\"x\" repeat: 40000)]' >/dev/null || exit 1; done
         beamtalk eval 'Transcript showLine: \"end\"' > /dev/null; beamtalk agents start",
        "anvilsrv started successfully\n",
    );
    world.transcript(
        r"
        $ beamtalk 9p rpc agent/eval '3 + 4'
        7
        $ beamtalk 9p read agent/classes/Fan/speed | tail -1
        speed => self.speed
        $ beamtalk 9p read agent/transcript | tail -c 8 | tr x y
        yyy
        end
        $ beamtalk workspace transcript --recent 1; beamtalk workspace transcript --recent 1000 | wc -lc
        end
            161 6400164
        ",
    );
}

/// Without a workspace the files exist and say so; when it comes, and comes again, they work.
#[test]
fn the_link_is_found_again() {
    let world = World::new();
    world.project("");
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    let absent = "beamtalk 9p: open agent/eval: no workspace\n[1]\n";
    world.check("beamtalk 9p rpc agent/eval '1'", absent);
    world.check(
        "beamtalk 9p ls -d agent/classes; beamtalk 9p ls agent/classes",
        "classes\nbeamtalk 9p: open agent/classes: no workspace\n[1]\n",
    );
    for _ in 0..2 {
        world.value("beamtalk workspace start");
        world.until("beamtalk 9p rpc agent/eval '1'");
        world.check("beamtalk 9p ls agent/classes/Fan | tail -1", "speed\n");
        let began = Instant::now();
        world.check(
            "beamtalk 9p read agent/transcript.follow > $W/said & reader=$!; \
             until [ -s $W/said ]; do beamtalk eval 'Transcript show: 1' > /dev/null; done; \
             beamtalk workspace stop > /dev/null 2>&1; wait $reader; rm $W/said; echo ended",
            "ended\n",
        );
        assert!(began.elapsed() < Duration::from_secs(30));
        world.check("beamtalk 9p rpc agent/eval '1'", absent);
    }
    let none = World::new();
    none.check(
        "beamtalk agents start --no-workspace",
        "anvilsrv started successfully\n",
    );
    none.check("beamtalk 9p rpc agent/eval '1'", absent);
}

/// Who may what, by level and by the key of the backend.
#[test]
fn levels_decide_what_may_be_written() {
    let world = World::new();
    world.project("");
    world.config("backends/reads.yaml", "command: [sh]\nworkspace: read\n");
    world.config("backends/writes.yaml", "command: [sh]\nworkspace: write\n");
    world.config("backends/none.yaml", "command: [sh]\nworkspace: none\n");
    world.value("beamtalk workspace start; beamtalk agents start");
    world.value("beamtalk agents token mint viewer read > $W/tok");
    world.check(
        "beamtalk 9p -T $W/tok read agent/classes/Fan/faster; echo
         beamtalk 9p -T $W/tok write agent/classes/Fan/faster 'faster => 1'
         beamtalk 9p -T $W/tok rpc agent/eval '1'; beamtalk 9p -T $W/tok rm agent/classes/Fan/faster",
        "faster => self.speed := self.speed + 1\n\
         beamtalk 9p: open agent/classes/Fan/faster: permission denied\n\
         beamtalk 9p: open agent/eval: permission denied\n\
         beamtalk 9p: remove agent/classes/Fan/faster: permission denied\n[1]\n",
    );
    for (backend, read, write, eval) in [
        ("none", false, false, false),
        ("reads", true, false, false),
        ("writes", true, true, true),
    ] {
        world.value(&format!(
            "beamtalk agents new {backend} $PWD --alias {backend} --wait"
        ));
        let door = format!(
            "-a $NAMESPACE/doors/$(beamtalk 9p ls agent/{backend}/.. | grep -x '[0-9a-f]*' | head -1)/agent"
        );
        drop(door);
        let id = world.value(&format!("beamtalk agents show {backend} | sed -n 's/^id: //p'"));
        world.value(&format!(
            "beamtalk agents token mint t{backend} session {id} > $W/t{backend}"
        ));
        let try_it = |command: &str| world.run(&command.replace('@', &format!("-T $W/t{backend}"))).1 == 0;
        assert_eq!(
            try_it("beamtalk 9p @ read agent/classes/Fan/speed"),
            read,
            "{backend}"
        );
        assert_eq!(
            try_it("beamtalk 9p @ write agent/classes/Fan/faster 'faster => 9'"),
            write,
            "{backend}"
        );
        assert_eq!(try_it("beamtalk 9p @ rpc agent/eval 1"), eval, "{backend}");
    }
    // The one that could is an agent, and the log says so.
    world.check("beamtalk 9p read agent/changes/log | jq -r .author", "agent\n");
}
