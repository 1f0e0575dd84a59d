//! `format`: code as the formatter writes it.

use beamtalk_wire::answers::FormatAnswer;
use beamtalk_wire::requests::Format;
use beamtalk_wire::{ErrorBody, ErrorKind};

pub(super) fn format(request: &Format) -> Result<FormatAnswer, ErrorBody> {
    let text = beamtalk_syntax::format_input(&request.code)
        .map_err(|fault| ErrorBody::new(ErrorKind::ParseError, fault.to_string()))?;
    Ok(FormatAnswer { text })
}
