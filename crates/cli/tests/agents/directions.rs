//! One method, written through the tree, the prompt, the browser's operation, a file on disk and `git checkout`, in
//! random order, against a model of what image, base and disk must be. `BEAMTALK_SEED` and `BEAMTALK_SECONDS` choose
//! another run.

use std::time::{Duration, Instant};

use beamtalk_client::{Greeting, reach};
use beamtalk_storage::{StateDirectory, WorkspaceId};
use beamtalk_wire::requests::SaveMethod;

use crate::kills::Dice;
use crate::support::World;

/// What must be where.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    image: u64,
    base: u64,
    disk: u64,
}

impl Model {
    fn write(&mut self, number: u64) {
        self.image = number;
    }

    /// Load what is on disk, unless the image has something of its own.
    fn sync(&mut self) {
        if self.image == self.base || self.image == self.disk {
            (self.image, self.base) = (self.disk, self.disk);
        }
    }

    /// Write what the image has, unless the disk has something of its own.
    fn flush(&mut self) {
        if self.image != self.base && (self.disk == self.base || self.disk == self.image) {
            (self.disk, self.base) = (self.image, self.image);
        }
    }
}

fn browser_saves(world: &World, number: u64) {
    let home = world.path("home/.beamtalk");
    let state = StateDirectory::open(Some(home)).expect("the state directory");
    let root = std::fs::canonicalize(world.path("work")).unwrap();
    let id = WorkspaceId::for_root(&root).expect("an id");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let greeting = Greeting {
            client: "browser",
            resume: None,
        };
        let (connection, _events) = reach(&state, &id, greeting).await.expect("a connection");
        let request = SaveMethod {
            class: "Fan".to_owned(),
            selector: "faster".to_owned(),
            source: format!("faster => {number}"),
            ..SaveMethod::default()
        };
        connection.ask(&request).await.expect("saved");
    });
}

#[test]
fn five_ways_of_writing_end_in_one_image() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed: u64 = number("BEAMTALK_SEED").unwrap_or(20_261_117);
    let limit = Duration::from_secs(number("BEAMTALK_SECONDS").unwrap_or(8));
    let mut dice = Dice(seed | 1);
    let world = World::new();
    world.project("");
    world.value(
        "sed -i 's/^  faster => .*/  faster => 1/' src/Fan.bt
         git init -q . && git add src && git -c user.name=t -c user.email=t@t commit -qm one",
    );
    world.value("beamtalk workspace start; beamtalk agents start");
    let mut model = Model {
        image: 1,
        base: 1,
        disk: 1,
    };
    let began = Instant::now();
    let mut next = 1;
    let mut done = Vec::new();
    while began.elapsed() < limit || done.len() < 12 {
        next += 1;
        let step = dice.roll(8);
        let (name, script) = match step {
            0 | 1 => {
                model.write(next);
                (
                    "tree",
                    format!("beamtalk 9p write agent/classes/Fan/faster 'faster => {next}'"),
                )
            }
            2 => {
                model.write(next);
                (
                    "prompt",
                    format!("beamtalk 9p rpc agent/eval 'Fan >> faster => {next}'"),
                )
            }
            3 => {
                browser_saves(&world, next);
                model.write(next);
                ("browser", "true".to_owned())
            }
            4 => {
                model.disk = next;
                model.sync();
                (
                    "editor on disk",
                    format!(
                        "sed -i 's/^  faster => .*/  faster => {next}/' src/Fan.bt && beamtalk 9p rpc agent/eval 'Workspace sync'"
                    ),
                )
            }
            5 => {
                model.disk = 1;
                model.sync();
                (
                    "git checkout",
                    "git checkout -q src/Fan.bt && beamtalk 9p rpc agent/eval 'Workspace sync'".to_owned(),
                )
            }
            _ => {
                model.flush();
                ("flush", "beamtalk 9p rpc agent/changes/ctl flush".to_owned())
            }
        };
        let (said, status) = world.run(&script);
        done.push(format!("{name} {next}"));
        let story = || format!("seed {seed}, {model:?}, {said}\n{}", done.join("\n"));
        assert_eq!(status, 0, "{}", story());
        let image = world.value("beamtalk 9p rpc agent/eval '(Fan spawn) faster'");
        assert_eq!(image, model.image.to_string(), "image: {}", story());
        let disk = world.value("sed -n 's/^  faster => //p' src/Fan.bt");
        assert_eq!(disk, model.disk.to_string(), "disk: {}", story());
        // The tree hears of what others wrote a moment later.
        let wanted = format!("faster => {}", model.image);
        world.until(&format!(
            "test \"$(beamtalk 9p read agent/classes/Fan/faster)\" = '{wanted}'"
        ));
    }
    // Every text that was ever written is in the log.
    let log = world.value("beamtalk 9p read agent/changes/log | grep -c faster");
    let written = done
        .iter()
        .filter(|step| ["tree", "prompt", "browser"].contains(&step.split(' ').next().unwrap()))
        .count();
    assert!(log.parse::<usize>().unwrap() >= written, "{log} of {written}");
}
