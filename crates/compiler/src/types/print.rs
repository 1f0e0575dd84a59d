//! Types as people write them.

use std::fmt::{self, Display, Formatter, Write};

use super::form::{Form, Type};

/// Unions longer than this are cut.
const MAX_MEMBERS: usize = 12;
/// Nothing longer than this helps anybody.
const MAX_LENGTH: usize = 400;

impl Display for Type {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut out = Bounded {
            text: String::new(),
            is_full: false,
        };
        // Running out of room is the only way to fail, and then the text ends in an ellipsis.
        let _ = print(self, 0, &mut out);
        formatter.write_str(&out.text)?;
        if out.is_full {
            formatter.write_str("…")
        } else {
            Ok(())
        }
    }
}

struct Bounded {
    text: String,
    is_full: bool,
}

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.text.len() + part.len() > MAX_LENGTH {
            self.is_full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

/// `tight` is 0 at the top, 1 inside a union, 2 inside an intersection or difference.
fn print(of: &Type, tight: u8, out: &mut Bounded) -> fmt::Result {
    match of.form() {
        Form::Dynamic(_) => out.write_str("Dynamic"),
        Form::Never => out.write_str("Never"),
        Form::Class { name, arguments, .. } => {
            let name = match name.as_str() {
                "UndefinedObject" => "Nil",
                "True" => "true",
                "False" => "false",
                name => name,
            };
            out.write_str(name)?;
            if arguments.is_empty() {
                return Ok(());
            }
            list("(", arguments, out)
        }
        Form::ClassOf(name) => write!(out, "{name} class"),
        Form::Protocol(name) | Form::Parameter(name) => out.write_str(name),
        Form::Symbol(name) => write!(out, "#{name}"),
        Form::Block { parameters, result } => {
            out.write_str("Block(")?;
            for parameter in parameters {
                print(parameter, 0, out)?;
                out.write_str(", ")?;
            }
            print(result, 0, out)?;
            out.write_str(")")
        }
        Form::Tuple(parts) => {
            out.write_str("Tuple")?;
            list("(", parts, out)
        }
        Form::Union(members) => chain(members, " | ", tight > 0, 1, out),
        Form::Intersection(members) => chain(members, " & ", tight > 1, 2, out),
        Form::Without { base, removed } => {
            if tight > 1 {
                out.write_str("(")?;
            }
            print(base, 2, out)?;
            for part in removed {
                out.write_str(" \\ ")?;
                print(part, 2, out)?;
            }
            if tight > 1 { out.write_str(")") } else { Ok(()) }
        }
    }
}

fn list(open: &str, parts: &[Type], out: &mut Bounded) -> fmt::Result {
    out.write_str(open)?;
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        print(part, 0, out)?;
    }
    out.write_str(")")
}

fn chain(
    members: &[Type],
    between: &str,
    has_parentheses: bool,
    tight: u8,
    out: &mut Bounded,
) -> fmt::Result {
    if has_parentheses {
        out.write_str("(")?;
    }
    for (index, member) in members.iter().enumerate() {
        if index > 0 {
            out.write_str(between)?;
        }
        if index == MAX_MEMBERS && members.len() > MAX_MEMBERS + 1 {
            write!(out, "{} more", members.len() - MAX_MEMBERS)?;
            break;
        }
        print(member, tight, out)?;
    }
    if has_parentheses {
        out.write_str(")")
    } else {
        Ok(())
    }
}
