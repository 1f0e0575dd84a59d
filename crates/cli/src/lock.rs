//! The flag about `beamtalk.lock`.

use beamtalk_project::lock::Locking;

/// The flag of every command that resolves dependencies.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct LockArguments {
    /// Fail if beamtalk.lock would change.
    #[arg(long)]
    locked: bool,
}

impl From<LockArguments> for Locking {
    fn from(arguments: LockArguments) -> Self {
        if arguments.locked {
            Locking::Frozen
        } else {
            Locking::Follow
        }
    }
}
