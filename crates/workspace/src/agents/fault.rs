//! Errors of the tree as the kinds the image knows.

use beamtalk_ninep::Error;
use beamtalk_wire::ErrorBody;

use super::DoorFault;

pub(super) fn unavailable(reason: &str) -> ErrorBody {
    ErrorBody::new(
        "agent_unavailable",
        format!("the agents' daemon is not reached: {reason}"),
    )
    .hint("start it with: beamtalk agents start")
}

pub(super) fn of_door(fault: DoorFault) -> ErrorBody {
    match fault {
        DoorFault::Unreachable(reason) => unavailable(&reason),
        DoorFault::Denied(reason) => ErrorBody::new("agent_denied", reason),
    }
}

/// Whether the connection is of no use any more.
pub(super) fn is_broken(error: &Error) -> bool {
    matches!(
        error,
        Error::Io(_) | Error::Closed | Error::Malformed | Error::Unexpected { .. }
    )
}

/// Whether the link was dead before anything was asked.
pub(super) fn is_unsent(error: &Error) -> bool {
    match error {
        Error::Closed => true,
        Error::Io(error) => matches!(
            error.kind(),
            std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::NotConnected
        ),
        _ => false,
    }
}

pub(super) fn of(error: &Error) -> ErrorBody {
    match error {
        Error::TimedOut => ErrorBody::new("agent_timeout", "the agent did not answer in time"),
        Error::Refused(refusal) => ErrorBody::new(kind_of(&refusal.text), refusal.text.as_ref()),
        error => unavailable(&error.to_string()),
    }
}

/// The kind of a refusal, by the strings of the tree.
pub(super) fn kind_of(text: &str) -> &'static str {
    match text {
        "not found" | "session not found" => "agent_not_found",
        "session busy"
        | "another operation in progress"
        | "session still starting"
        | "queue full"
        | "budget reached" => "agent_busy",
        text if text.starts_with("permission denied")
            || text.starts_with("auth")
            || text.starts_with("not approved") =>
        {
            "agent_denied"
        }
        _ => "agent_failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_kinds_of_the_language() {
        assert_eq!(kind_of("session busy"), "agent_busy");
        assert_eq!(kind_of("session not found"), "agent_not_found");
        assert_eq!(
            kind_of("permission denied: can only remove from own inbox"),
            "agent_denied"
        );
        assert_eq!(kind_of("authentication required"), "agent_denied");
        assert_eq!(kind_of("path does not exist: /no/such"), "agent_failed");
        assert_eq!(
            kind_of("session failed: timeout waiting for ready"),
            "agent_failed"
        );
    }
}
