//! Who may do what: levels of connections and access lists of sessions.

use std::collections::BTreeSet;

use beamtalk_ninep::Refusal;

use crate::error::refusal;

/// What a connection may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Read,
    Session(String),
    Control,
}

impl Level {
    pub(crate) fn word(&self) -> String {
        match self {
            Level::Read => "read".to_owned(),
            Level::Session(id) => format!("session:{id}"),
            Level::Control => "control".to_owned(),
        }
    }
}

/// In whose name a connection acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Owner,
    Root,
    Session(String),
    Token(String),
}

impl Who {
    pub(crate) fn word(&self) -> String {
        match self {
            Who::Owner => "owner".to_owned(),
            Who::Root => "root".to_owned(),
            Who::Session(id) => format!("session:{id}"),
            Who::Token(name) => format!("token:{name}"),
        }
    }
}

/// A right on a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    Read,
    Prompt,
    Control,
    Mail,
}

impl Right {
    fn of(letter: char) -> Option<Right> {
        Some(match letter {
            'r' => Right::Read,
            'p' => Right::Prompt,
            'c' => Right::Control,
            'm' => Right::Mail,
            _ => return None,
        })
    }
}

pub(crate) const DEFAULT_ACL: &str = "allow owner rpcm\nallow self rm\nallow session:* m\nallow token:* r\n";
pub(crate) const ACL_LINES: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Principal {
    Owner,
    Own,
    /// `None` is `*`.
    Session(Option<String>),
    Token(Option<String>),
}

#[derive(Clone, Debug)]
struct Line {
    allow: bool,
    principal: Principal,
    rights: BTreeSet<Right>,
}

/// The access list of one session.
#[derive(Clone, Debug)]
pub(crate) struct Acl {
    text: String,
    lines: Vec<Line>,
}

impl Acl {
    pub(crate) fn parse(text: &str, limit: usize) -> Result<Self, Refusal> {
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let fail = |reason: &str| refusal(format!("acl: line {}: {reason}", number + 1));
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let (verb, principal, rights) = match words.as_slice() {
                [] => continue,
                [verb, principal, rights] => (*verb, *principal, *rights),
                _ => return Err(fail("expected allow|deny <principal> <rights>")),
            };
            let allow = match verb {
                "allow" => true,
                "deny" => false,
                _ => return Err(fail("expected allow or deny")),
            };
            let star = |name: &str| (name != "*").then(|| name.to_owned());
            let principal = match principal.split_once(':') {
                None if principal == "owner" => Principal::Owner,
                None if principal == "self" => Principal::Own,
                Some(("session", name)) if !name.is_empty() => Principal::Session(star(name)),
                Some(("token", name)) if !name.is_empty() => Principal::Token(star(name)),
                _ => return Err(fail("unknown principal")),
            };
            let rights: Option<BTreeSet<Right>> = rights.chars().map(Right::of).collect();
            lines.push(Line {
                allow,
                principal,
                rights: rights.ok_or_else(|| fail("rights are letters of rpcm"))?,
            });
            if lines.len() > limit {
                return Err(fail("too many lines"));
            }
        }
        Ok(Acl {
            text: text.to_owned(),
            lines,
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether `who` has `right` on session `id` with this list; `alias_of` names other sessions.
    pub(crate) fn grants(
        &self,
        who: &Who,
        id: &str,
        right: Right,
        alias_of: impl Fn(&str) -> Option<String>,
    ) -> bool {
        if right == Right::Control && matches!(who, Who::Owner | Who::Root) {
            return true;
        }
        let matches = |principal: &Principal| match (principal, who) {
            (Principal::Owner, Who::Owner | Who::Root) => true,
            (Principal::Own, Who::Session(caller)) => caller == id,
            (Principal::Session(None), Who::Session(_)) | (Principal::Token(None), Who::Token(_)) => true,
            (Principal::Session(Some(name)), Who::Session(caller)) => {
                name == caller || alias_of(caller).as_deref() == Some(name)
            }
            (Principal::Token(Some(name)), Who::Token(token)) => name == token,
            _ => false,
        };
        let has = |allow: bool| {
            self.lines
                .iter()
                .any(|line| line.allow == allow && line.rights.contains(&right) && matches(&line.principal))
        };
        has(true) && !has(false)
    }
}

#[cfg(test)]
mod tests {
    use super::{Acl, DEFAULT_ACL, Right, Who};

    fn grants(text: &str, who: &Who, right: Right) -> bool {
        Acl::parse(text, 256)
            .unwrap()
            .grants(who, "aaaaaaaa", right, |id| {
                (id == "bbbbbbbb").then(|| "bob".to_owned())
            })
    }

    #[test]
    fn the_default_list_lets_sessions_mail_and_tokens_read() {
        let own = Who::Session("aaaaaaaa".to_owned());
        let other = Who::Session("bbbbbbbb".to_owned());
        let token = Who::Token("viewer".to_owned());
        assert!(grants(DEFAULT_ACL, &Who::Owner, Right::Prompt));
        assert!(grants(DEFAULT_ACL, &own, Right::Read) && !grants(DEFAULT_ACL, &own, Right::Prompt));
        assert!(grants(DEFAULT_ACL, &other, Right::Mail) && !grants(DEFAULT_ACL, &other, Right::Read));
        assert!(grants(DEFAULT_ACL, &token, Right::Read) && !grants(DEFAULT_ACL, &token, Right::Mail));
    }

    #[test]
    fn deny_wins_and_the_owner_keeps_control() {
        assert!(!grants(
            "allow session:* p\ndeny session:bob p",
            &Who::Session("bbbbbbbb".to_owned()),
            Right::Prompt
        ));
        assert!(grants("deny owner rpcm", &Who::Owner, Right::Control));
        assert!(!grants(
            "allow owner rpcm\ndeny owner p",
            &Who::Owner,
            Right::Prompt
        ));
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, message) in [
            (
                "allow owner",
                "acl: line 1: expected allow|deny <principal> <rights>",
            ),
            ("# note\npermit owner r", "acl: line 2: expected allow or deny"),
            ("allow everyone r", "acl: line 1: unknown principal"),
            ("allow owner rx", "acl: line 1: rights are letters of rpcm"),
        ] {
            assert_eq!(Acl::parse(text, 256).unwrap_err().text, message);
        }
    }
}
