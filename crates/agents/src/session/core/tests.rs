//! Tables of events and effects, and properties over any sequence of events.

use proptest::prelude::*;

use super::{Core, Effect, Ending, Event, Rules, State};
use crate::config::{IdleMode, Ready, RestartPolicy};

fn rules() -> Rules {
    Rules {
        ready: Ready::Hook,
        ready_min_bytes: 1,
        ready_quiet_ms: 300,
        start_timeout_ms: 30_000,
        idle: IdleMode::Hook,
        idle_min_bytes: 1,
        idle_quiet_ms: 300,
        max_running_ms: 0,
        policy: RestartPolicy::OnFailure,
        delay_ms: 5000,
        max_crashes: 5,
        window_ms: 600_000,
        continues: true,
        asks: false,
    }
}

fn core(state: State) -> Core {
    Core::new(rules(), state)
}

fn changed(old: State, new: State) -> Effect {
    Effect::Changed { old, new }
}

fn crash(now: u64) -> Event {
    Event::Ended {
        now,
        ending: Ending {
            status: Some(3),
            signal: None,
        },
    }
}

fn clean(now: u64) -> Event {
    Event::Ended {
        now,
        ending: Ending {
            status: Some(0),
            signal: None,
        },
    }
}

fn tick(now: u64) -> Event {
    Event::Tick {
        now,
        busy_children: false,
    }
}

#[test]
fn a_turn_begins_with_a_prompt_and_ends_with_a_hook() {
    let mut core = core(State::Idle);
    assert_eq!(
        core.handle(Event::Prompted { now: 1 }),
        [Effect::TurnBegan, changed(State::Idle, State::Running)]
    );
    assert_eq!(
        core.handle(Event::Prompted { now: 2 }),
        [Effect::Refuse("session busy".to_owned())]
    );
    assert_eq!(
        core.handle(Event::Written {
            now: 3,
            to: State::Idle,
            control: false
        }),
        [
            Effect::FinishTurn,
            changed(State::Running, State::Idle),
            Effect::AnnounceTurn { reason: "idle" }
        ]
    );
}

#[test]
fn written_states_follow_the_table() {
    for (from, to, control, expected) in [
        (State::Idle, State::Idle, false, Ok(State::Idle)),
        (State::Idle, State::Running, false, Ok(State::Running)),
        (State::Starting, State::Idle, false, Ok(State::Idle)),
        (
            State::Idle,
            State::Starting,
            true,
            Err("invalid state transition: idle → starting"),
        ),
        (
            State::Starting,
            State::Running,
            true,
            Err("invalid state transition: starting → running"),
        ),
        (
            State::Stopped,
            State::Idle,
            true,
            Err("invalid state transition: stopped → idle"),
        ),
        (State::Error, State::Idle, false, Err("permission denied")),
        (State::Error, State::Idle, true, Ok(State::Idle)),
        (
            State::Running,
            State::Exited,
            true,
            Err("invalid state transition: running → exited"),
        ),
    ] {
        let mut core = core(from);
        let effects = core.handle(Event::Written { now: 1, to, control });
        match expected {
            Ok(state) => assert_eq!(core.state, state),
            Err(text) => {
                assert_eq!(effects, [Effect::Refuse(text.to_owned())]);
                assert_eq!(core.state, from);
            }
        }
    }
}

#[test]
fn a_crash_is_restarted_after_a_growing_delay_and_gives_up_after_five() {
    let mut core = core(State::Idle);
    let mut now = 0;
    for (number, delay) in [(1, 5000), (2, 10_000), (3, 20_000), (4, 40_000)] {
        let effects = core.handle(crash(now));
        assert!(
            effects.contains(&changed(State::Idle, State::Error)),
            "{effects:?}"
        );
        assert_eq!(core.crashes, number);
        assert_eq!(core.deadline(), Some(now + delay));
        assert!(core.handle(tick(now + delay - 1)).is_empty());
        let effects = core.handle(tick(now + delay));
        assert!(
            effects.contains(&Effect::Relaunch { attempt: number }),
            "{effects:?}"
        );
        core.handle(Event::Launched { now: now + delay });
        core.handle(Event::Written {
            now: now + delay,
            to: State::Idle,
            control: false,
        });
        now += delay;
    }
    core.handle(crash(now));
    assert_eq!(core.deadline(), None);
    assert_eq!(core.last_error.as_deref(), Some("crash loop: 5 crashes in 600 s"));
}

#[test]
fn a_clean_exit_stops_and_only_policy_always_restarts_it() {
    let mut plain = core(State::Running);
    assert_eq!(
        plain.handle(clean(1)),
        [
            Effect::FinishTurn,
            changed(State::Running, State::Stopped),
            Effect::AnnounceTurn { reason: "exit" }
        ]
    );
    assert_eq!(plain.deadline(), None);
    let mut always = core(State::Idle);
    always.rules.policy = RestartPolicy::Always;
    always.handle(clean(1));
    assert_eq!(always.deadline(), Some(5001));
    assert!(
        always
            .handle(tick(5001))
            .contains(&Effect::Relaunch { attempt: 1 })
    );
}

#[test]
fn interrupted_work_is_continued_after_a_crash() {
    let mut core = core(State::Running);
    core.handle(crash(0));
    core.handle(tick(5000));
    let effects = core.handle(Event::Written {
        now: 5001,
        to: State::Idle,
        control: false,
    });
    assert_eq!(effects, [changed(State::Starting, State::Idle), Effect::Continue]);
}

#[test]
fn quiet_readiness_needs_output_and_rest() {
    let mut core = core(State::Starting);
    core.rules.ready = Ready::Quiet;
    core.handle(Event::Launched { now: 0 });
    assert!(core.handle(tick(1000)).is_empty());
    core.handle(Event::Output { now: 1000, bytes: 5 });
    assert!(core.handle(tick(1299)).is_empty());
    assert_eq!(core.handle(tick(1300)), [changed(State::Starting, State::Idle)]);
}

#[test]
fn startup_fails_by_time_pattern_or_refusal() {
    let mut late = core(State::Starting);
    late.handle(Event::Launched { now: 0 });
    late.handle(tick(30_000));
    assert_eq!(
        (late.state, late.last_error.as_deref()),
        (State::Error, Some("timeout waiting for ready"))
    );
    let mut pattern = core(State::Starting);
    pattern.handle(Event::ErrorLine {
        line: "no key".to_owned(),
    });
    assert_eq!(
        pattern.last_error.as_deref(),
        Some("backend launch failed: no key")
    );
    let mut refused = core(State::Starting);
    refused.handle(Event::LaunchFailed {
        now: 0,
        reason: "sandbox: x".to_owned(),
        retry: false,
    });
    assert_eq!((refused.state, refused.deadline()), (State::Error, None));
}

#[test]
fn a_recovered_turn_without_hooks_ends_by_quiet() {
    let mut core = core(State::Running);
    core.handle(Event::Adopted { now: 0 });
    assert!(core.handle(tick(9999)).is_empty());
    assert!(
        core.handle(tick(10_000))
            .contains(&changed(State::Running, State::Idle))
    );
}

#[test]
fn busy_children_keep_a_turn_open() {
    let mut core = core(State::Running);
    core.rules.idle = IdleMode::Quiet;
    core.handle(Event::Output { now: 0, bytes: 1 });
    assert!(
        core.handle(Event::Tick {
            now: 300,
            busy_children: true
        })
        .is_empty()
    );
    assert!(
        core.handle(Event::Tick {
            now: 600,
            busy_children: false
        })
        .contains(&Effect::FinishTurn)
    );
}

fn state() -> impl Strategy<Value = State> {
    proptest::sample::select(State::ALL.to_vec())
}

fn event() -> impl Strategy<Value = Event> {
    let now = 0_u64..100_000;
    prop_oneof![
        now.clone().prop_map(|now| Event::Launched { now }),
        (now.clone(), any::<bool>()).prop_map(|(now, retry)| Event::LaunchFailed {
            now,
            reason: "x".to_owned(),
            retry
        }),
        (now.clone(), 1_u64..50).prop_map(|(now, bytes)| Event::Output { now, bytes }),
        now.clone().prop_map(|now| Event::ScreenMatches { now }),
        (now.clone(), any::<bool>()).prop_map(|(now, busy_children)| Event::Tick { now, busy_children }),
        (now.clone(), state(), any::<bool>()).prop_map(|(now, to, control)| Event::Written {
            now,
            to,
            control
        }),
        now.clone().prop_map(|now| Event::Prompted { now }),
        now.clone().prop_map(|now| Event::DeliveryFailed { now }),
        Just(Event::Stopped),
        now.clone().prop_map(|now| Event::RestartAsked { now }),
        Just(Event::Killed),
        (now.clone(), 0..3_i32).prop_map(|(now, status)| Event::Ended {
            now,
            ending: Ending {
                status: Some(status),
                signal: None
            }
        }),
        now.clone().prop_map(|now| Event::WindowLost { now }),
        now.clone().prop_map(|now| Event::FoundAlive { now }),
        now.prop_map(|now| Event::Adopted { now }),
    ]
}

/// The pairs of the table of states.
fn is_allowed(old: State, new: State) -> bool {
    matches!(
        (old, new),
        (State::Starting, State::Idle | State::Error)
            | (State::Idle, State::Running | State::Error | State::Starting)
            | (State::Running, State::Idle | State::Error | State::Starting)
            | (State::Error, State::Starting | State::Idle)
            | (State::Stopped, State::Starting | State::Error)
            | (
                State::Starting | State::Idle | State::Running | State::Error,
                State::Stopped
            )
    ) || (new == State::Exited && old != State::Exited)
}

proptest! {
    #[test]
    fn states_change_only_along_the_table(start in state(), events in proptest::collection::vec(event(), 1..60)) {
        let mut core = core(start);
        let mut seen = start;
        let mut in_turn = start == State::Running;
        for event in events {
            for effect in core.handle(event) {
                match effect {
                    Effect::Changed { old, new } => {
                        prop_assert_eq!(old, seen);
                        prop_assert!(is_allowed(old, new), "{:?} → {:?}", old, new);
                        seen = new;
                    }
                    Effect::TurnBegan => { prop_assert!(!in_turn); in_turn = true; }
                    Effect::FinishTurn => { prop_assert!(in_turn); in_turn = false; }
                    Effect::Launch | Effect::Relaunch { .. } => prop_assert_eq!(core.state, State::Starting),
                    _ => {}
                }
            }
            prop_assert_eq!(core.state, seen);
            if seen != State::Running { in_turn = false; }
            if seen == State::Exited { prop_assert_eq!(core.deadline(), None); }
        }
    }
}

#[test]
fn a_question_holds_the_turn_until_it_is_answered() {
    let mut core = Core::new(
        Rules {
            asks: true,
            idle: IdleMode::Quiet,
            ..rules()
        },
        State::Idle,
    );
    core.handle(Event::Prompted { now: 0 });
    core.handle(Event::Output { now: 1, bytes: 10 });
    assert!(
        core.deadline().is_some_and(|at| at <= 51),
        "the screen is looked at"
    );
    let asked = core.handle(Event::Question { now: 60, asked: true });
    assert_eq!(asked, [changed(State::Running, State::Waiting)]);
    assert_eq!(core.prompt_refusal().as_deref(), Some("session busy"));
    // Quiet is no end of the turn while it waits, and the program cannot say so either.
    let tick = Event::Tick {
        now: 10_000,
        busy_children: false,
    };
    assert!(!core.handle(tick).contains(&changed(State::Waiting, State::Idle)));
    let written = |control| Event::Written {
        now: 10_001,
        to: State::Idle,
        control,
    };
    assert!(matches!(
        core.handle(written(false)).as_slice(),
        [Effect::Refuse(_)]
    ));
    let gone = core.handle(Event::Question {
        now: 10_002,
        asked: false,
    });
    assert_eq!(gone, [changed(State::Waiting, State::Running)]);
    core.handle(Event::Question {
        now: 10_003,
        asked: true,
    });
    assert!(
        core.handle(written(true))
            .contains(&changed(State::Waiting, State::Idle))
    );
}
