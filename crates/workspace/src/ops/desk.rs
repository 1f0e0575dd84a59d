//! `desk-read` and `desk-write`.

use beamtalk_wire::answers::{DeskReadAnswer, DeskWriteAnswer};
use beamtalk_wire::requests::{DeskRead, DeskWrite};
use beamtalk_wire::{DeskEvent, ErrorBody, ErrorKind, Event};

use crate::desk::DeskError;
use crate::told::milliseconds;
use crate::workspace::Workspace;

pub(super) fn read(workspace: &Workspace, request: &DeskRead) -> DeskReadAnswer {
    let items = workspace.desk.borrow().read(request.names.as_deref());
    DeskReadAnswer { items }
}

pub(super) fn write(workspace: &Workspace, request: &DeskWrite) -> Result<DeskWriteAnswer, ErrorBody> {
    let DeskWrite { name, version, text } = request;
    let mut desk = workspace.desk.borrow_mut();
    let written = desk.write(name, text.as_deref(), *version, milliseconds());
    let version = written.map_err(|fault| {
        let message = fault.to_string();
        match fault {
            DeskError::Changed(item) => {
                let error = ErrorBody::new(ErrorKind::VersionConflict, message);
                match item {
                    Some(item) => error.detail("text", item.text).detail("version", item.version),
                    None => error.detail("version", 0),
                }
            }
            DeskError::Storage(_) => ErrorBody::new(ErrorKind::WriteFailed, message),
            DeskError::Name(_) | DeskError::TooLong | DeskError::Full => {
                ErrorBody::new(ErrorKind::InvalidParameter, message)
            }
        }
    })?;
    drop(desk);
    workspace.publish_to_owners(&Event::Desk(DeskEvent::Changed {
        name: name.clone(),
        version: if text.is_some() { version } else { 0 },
    }));
    Ok(DeskWriteAnswer { version })
}
