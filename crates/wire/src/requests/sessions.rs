//! Sessions.

use super::field::request;

request! {
    /// All sessions.
    Sessions {}
}

request! {
    /// The variables of a session.
    Bindings {
        ;
        /// With text and class; so if absent.
        values: bool,
    }
}

request! {
    /// Forget the variables of one's own session.
    Clear {}
}

request! {
    /// Make a session with a copy of the variables.
    Clone {}
}

request! {
    /// End the session now.
    Close {}
}
