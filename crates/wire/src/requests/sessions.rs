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
        handle: String,
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

request! {
    /// Make a handle: variables that belong to who asks and outlive the connection.
    HandleOpen {}
}

request! {
    /// Forget a handle and its variables.
    HandleClose {
        handle: String,
    }
}

request! {
    /// One's own handles.
    HandleList {}
}

request! {
    /// Keep what a person is asked until the answer comes; it can be taken once, within ten minutes, by who kept it.
    QuestionKeep {
        text: String,
    }
}

request! {
    /// Take a question that was kept.
    QuestionTake {
        state: String,
    }
}
