//! Looking at something in one of several ways. Nothing of the user's is run for it.

use super::actors::{ActorName, Step};
use super::field::request;

request! {
    /// The ways to look at exactly one of: an actor, a variable, a class, a value that is held.
    Views {
        ;
        actor: ActorName,
        binding: String,
        class: String,
        /// What `eval` with `hold` answered.
        r#ref: String,
        /// From the outermost value down.
        path: Vec<Step>,
        /// Whose variable it is.
        handle: String,
    }
}

request! {
    /// A part of a view: of something by the view's name, or of a view that was answered before.
    View {
        ;
        actor: ActorName,
        binding: String,
        class: String,
        r#ref: String,
        path: Vec<Step>,
        handle: String,
        /// One that `views` answered; the first if absent.
        name: String,
        /// The `id` of an earlier answer, instead of all the others.
        view: String,
        /// How many rows to leave out; of texts, bytes.
        from: u64,
        /// At most 500; 100 if absent.
        count: u64,
        /// Of a tree: answer what is below this one.
        node: String,
        /// The title of a column; with `-` before it, the greatest first.
        sort: String,
        /// Only rows with this text in them.
        find: String,
    }
}
