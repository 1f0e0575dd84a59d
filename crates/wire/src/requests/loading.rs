//! Loading code into the image.

use super::field::request;

request! {
    /// Load a file, or all files below a directory.
    LoadFile {
        path: String,
        ;
        /// Files of the directory that are not loaded, as the project's root has them.
        except: Vec<String>,
    }
}

request! {
    /// Define the classes of a text.
    LoadSource {
        source: String,
        ;
        /// What the text is called in locations.
        name: String,
    }
}

request! {
    /// Build the project and load what changed.
    LoadProject {
        ;
        /// Of the project; `.` if absent.
        path: String,
        include_tests: bool,
        /// Load what did not change, too.
        force: bool,
    }
}

request! {
    /// Load the files below `test/`.
    LoadTests {}
}

request! {
    /// Load the file of a class again.
    Reload {
        class: String,
    }
}

request! {
    /// Take a class out of the image.
    Unload {
        class: String,
        ;
        /// Although it has actors.
        force: bool,
    }
}

request! {
    /// The modules of the project.
    Modules {}
}
