use proptest::prelude::*;

use super::*;

fn machine(policy: Restart) -> Machine {
    Machine::new("p", policy, Backoff::default())
}

fn up(machine: &mut Machine, now: Ms) -> u64 {
    machine.handle(now, Input::Start);
    let generation = machine.generation();
    machine.handle(now, Input::Spawned { generation, pid: 7 });
    assert!(machine.is_up());
    generation
}

fn exit(generation: u64, exit: Exit) -> Input {
    Input::Exited {
        generation,
        exit,
        leftovers: false,
    }
}

fn info(text: &str) -> Output {
    Output::Log(Level::Info, text.into())
}

#[test]
fn a_start_spawns_and_reports() {
    let mut machine = machine(Restart::Never);
    assert_eq!(machine.handle(0, Input::Start), [Output::Spawn { generation: 1 }]);
    assert_eq!(
        machine.handle(
            5,
            Input::Spawned {
                generation: 1,
                pid: 7
            }
        ),
        [info("started process p"), Output::Started, Output::Done(Ok(()))]
    );
    assert_eq!(machine.handle(9, Input::Start), [Output::Done(Ok(()))]);
}

#[test]
fn a_failed_start_tells_who_asked() {
    let mut machine = machine(Restart::Always);
    machine.handle(0, Input::Start);
    let failed = Input::SpawnFailed {
        generation: 1,
        reason: "no".into(),
    };
    assert_eq!(
        machine.handle(0, failed),
        [
            Output::Done(Err("failed to start process 'p': no".into())),
            Output::Ended
        ]
    );
    assert_eq!(machine.deadline(), None);
}

#[test]
fn a_requested_stop_never_restarts() {
    let mut machine = machine(Restart::Always);
    let generation = up(&mut machine, 0);
    assert_eq!(machine.handle(1, Input::Stop), [Output::Stop { generation }]);
    assert_eq!(machine.handle(2, exit(generation, Exit::Signal(15))), []);
    assert_eq!(
        machine.handle(3, Input::Gone { generation }),
        [info("stopped process p"), Output::Ended, Output::Done(Ok(()))]
    );
    assert!(machine.is_settled());
    assert_eq!(machine.deadline(), None);
    assert_eq!(machine.handle(4, Input::Stop), [Output::Done(Ok(()))]);
}

#[test]
fn each_policy_answers_each_exit() {
    let table = [
        (Restart::Never, Exit::Code(0), false),
        (Restart::Never, Exit::Code(1), false),
        (Restart::OnFailure, Exit::Code(0), false),
        (Restart::OnFailure, Exit::Code(1), true),
        (Restart::OnFailure, Exit::Signal(9), true),
        (Restart::Always, Exit::Code(0), true),
        (Restart::Always, Exit::Signal(9), true),
    ];
    for (policy, how, again) in table {
        let mut machine = machine(policy);
        let generation = up(&mut machine, 0);
        machine.handle(1, exit(generation, how));
        assert_eq!(
            matches!(machine.phase(), Phase::Backoff { .. }),
            again,
            "{policy:?} {how}"
        );
    }
}

#[test]
fn delays_double_up_to_the_limit_and_begin_anew_after_a_long_life() {
    let mut machine = machine(Restart::Always);
    let mut generation = up(&mut machine, 0);
    let mut now = 0;
    let mut delays = Vec::new();
    for _ in 0..9 {
        machine.handle(now, exit(generation, Exit::Code(1)));
        let due = machine.deadline().unwrap();
        delays.push(due - now);
        now = due;
        assert_eq!(machine.handle(now, Input::Tick).len(), 1);
        generation = machine.generation();
        machine.handle(now, Input::Spawned { generation, pid: 7 });
    }
    assert_eq!(
        delays,
        [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]
    );
    assert_eq!(machine.restarts(), 9);
    now += 10_000;
    machine.handle(now, exit(generation, Exit::Code(1)));
    assert_eq!(machine.deadline(), Some(now + 500));
}

#[test]
fn asking_for_a_start_skips_the_delay_and_resets_it() {
    let mut machine = machine(Restart::Always);
    let generation = up(&mut machine, 0);
    machine.handle(0, exit(generation, Exit::Code(1)));
    assert_eq!(
        machine.handle(10, Input::Restart),
        [Output::Spawn { generation: 2 }]
    );
    machine.handle(
        10,
        Input::Spawned {
            generation: 2,
            pid: 8,
        },
    );
    machine.handle(20, exit(2, Exit::Code(1)));
    assert_eq!(machine.deadline(), Some(520));
}

#[test]
fn a_stop_cancels_a_scheduled_restart() {
    let mut machine = machine(Restart::Always);
    let generation = up(&mut machine, 0);
    machine.handle(0, exit(generation, Exit::Code(1)));
    assert_eq!(
        machine.handle(1, Input::Stop),
        [info("process p already exited"), Output::Done(Ok(()))]
    );
    assert_eq!(machine.handle(99_999, Input::Tick), []);
}

#[test]
fn leftovers_are_gone_before_the_next_start() {
    let mut machine = machine(Restart::Always);
    let generation = up(&mut machine, 0);
    let outputs = machine.handle(
        0,
        Input::Exited {
            generation,
            exit: Exit::Code(1),
            leftovers: true,
        },
    );
    assert!(outputs.contains(&Output::Stop { generation }));
    assert_eq!(
        machine.handle(99_999, Input::Tick),
        [],
        "the old group is still there"
    );
    machine.handle(100_000, Input::Gone { generation });
    assert_eq!(
        machine.handle(100_000, Input::Tick),
        [Output::Spawn { generation: 2 }]
    );
}

#[test]
fn unhealthy_is_stopped_then_delayed() {
    let mut machine = machine(Restart::OnFailure);
    let generation = up(&mut machine, 0);
    assert_eq!(machine.handle(1, Input::Unhealthy), [Output::Stop { generation }]);
    machine.handle(2, Input::Gone { generation });
    assert_eq!(machine.deadline(), Some(502));
    let mut patient = self::machine(Restart::Never);
    up(&mut patient, 0);
    assert_eq!(patient.handle(1, Input::Unhealthy), []);
}

#[test]
fn a_group_that_cannot_be_killed_fails_the_request_and_is_not_started_over() {
    let mut machine = machine(Restart::Always);
    let generation = up(&mut machine, 0);
    machine.handle(1, Input::Restart);
    let text = "process 'p' cannot be killed: 7 is left".to_owned();
    assert_eq!(
        machine.handle(
            2,
            Input::StopFailed {
                generation,
                left: vec![7]
            }
        ),
        [Output::Log(Level::Error, text.clone()), Output::Done(Err(text))]
    );
    assert_eq!(machine.deadline(), None);
    machine.handle(3, Input::Shutdown);
    machine.handle(
        4,
        Input::StopFailed {
            generation,
            left: vec![7],
        },
    );
    assert!(machine.is_settled());
}

#[test]
fn reports_about_earlier_starts_are_ignored() {
    let mut machine = machine(Restart::Always);
    up(&mut machine, 0);
    assert_eq!(machine.handle(1, exit(0, Exit::Code(1))), []);
    assert_eq!(machine.handle(1, Input::Gone { generation: 0 }), []);
    assert!(machine.is_up());
}

fn input() -> impl Strategy<Value = u8> {
    0u8..9
}

proptest! {
    /// A world that answers as the shell does: spawns succeed or fail, stops end with `Gone`.
    #[test]
    fn no_start_overlaps_another_and_every_request_is_answered(
        inputs in proptest::collection::vec((input(), 0u64..3000, any::<bool>()), 0..60),
        policy in 0u8..3,
    ) {
        let policy = [Restart::Never, Restart::OnFailure, Restart::Always][usize::from(policy)];
        let mut machine = machine(policy);
        let mut now = 0;
        // The start that is alive in the world, and whether its stop was asked for.
        let mut alive: Option<(u64, bool)> = None;
        let mut ended = None;
        let mut waiting = false;
        let mut closing = false;
        for (kind, pause, flag) in inputs {
            now += pause;
            let input = match kind {
                0 if !waiting => { waiting = true; Input::Start }
                1 if !waiting => { waiting = true; Input::Stop }
                2 if !waiting => { waiting = true; Input::Restart }
                3 => Input::Tick,
                4 => Input::Unhealthy,
                // A leader ends only once, even when others of its group stay.
                5 => match alive {
                    Some((generation, false)) if ended != Some(generation) => {
                        ended = Some(generation);
                        if !flag { alive = None; }
                        Input::Exited { generation, exit: Exit::Code(i32::from(flag)), leftovers: flag }
                    }
                    _ => Input::Tick,
                },
                6 | 7 => match alive.take() {
                    Some((generation, true)) => Input::Gone { generation },
                    other => { alive = other; Input::Tick }
                },
                8 if pause < 100 => { closing = true; Input::Shutdown }
                _ => Input::Tick,
            };
            let mut outputs = machine.handle(now, input);
            while let Some(output) = outputs.pop() {
                match output {
                    Output::Spawn { generation } => {
                        prop_assert!(alive.is_none(), "a start while {alive:?} is alive");
                        prop_assert!(!closing || pause < 100, "a start after shutdown");
                        let answer = if flag || kind == 2 {
                            alive = Some((generation, false));
                            Input::Spawned { generation, pid: 9 }
                        } else {
                            Input::SpawnFailed { generation, reason: "no".into() }
                        };
                        outputs.extend(machine.handle(now, answer));
                    }
                    Output::Stop { generation } => {
                        match &mut alive {
                            Some((other, stopping)) if *other == generation => *stopping = true,
                            _ => outputs.extend(machine.handle(now, Input::Gone { generation })),
                        }
                    }
                    Output::Done(_) => {
                        prop_assert!(waiting, "an answer nobody waits for");
                        waiting = false;
                    }
                    Output::Log(..) | Output::Started | Output::Ended => {}
                }
            }
        }
        // Whatever happened, a shutdown comes to rest once the world answers.
        machine.handle(now, Input::Shutdown);
        let generation = machine.generation();
        machine.handle(now, Input::Gone { generation });
        prop_assert!(machine.is_settled(), "{:?}", machine.phase());
    }
}
