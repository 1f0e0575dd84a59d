//! Questions that wait for a person: kept for who asked, taken once, forgotten after a while. What a client sends back
//! is only a name that is looked up here.

use std::cell::RefCell;
use std::time::Instant;

use beamtalk_wire::{ErrorBody, ErrorKind, limits};

struct Question {
    state: String,
    principal: String,
    text: String,
    kept: Instant,
}

#[derive(Default)]
pub(crate) struct Questions {
    waiting: RefCell<Vec<Question>>,
}

impl Questions {
    /// Keep a question; the oldest of the same principal makes room.
    pub(crate) fn keep(&self, principal: String, text: String) -> Result<String, ErrorBody> {
        let bytes = beamtalk_storage::random_bytes::<16>()
            .map_err(|cause| ErrorBody::new(ErrorKind::InternalError, cause.to_string()))?;
        let state = format!("rq_{}", beamtalk_storage::base64url(&bytes));
        self.forget_old();
        let mut waiting = self.waiting.borrow_mut();
        let is_own = |question: &Question| question.principal == principal;
        if waiting.iter().filter(|question| is_own(question)).count() >= limits::QUESTIONS
            && let Some(oldest) = waiting.iter().position(is_own)
        {
            waiting.remove(oldest);
        }
        waiting.push(Question {
            state: state.clone(),
            principal,
            text,
            kept: Instant::now(),
        });
        Ok(state)
    }

    pub(crate) fn take(&self, principal: &str, state: &str) -> Option<String> {
        self.forget_old();
        let mut waiting = self.waiting.borrow_mut();
        let is_meant = |question: &Question| question.state == state && question.principal == principal;
        let place = waiting.iter().position(is_meant)?;
        Some(waiting.remove(place).text)
    }

    fn forget_old(&self) {
        let is_young = |question: &Question| question.kept.elapsed() < limits::QUESTION_TIME;
        self.waiting.borrow_mut().retain(is_young);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_taken_once_and_by_its_owner() {
        let questions = Questions::default();
        let state = questions
            .keep("owner".to_owned(), "a".to_owned())
            .expect("random");
        assert_eq!(questions.take("token:ci", &state), None);
        assert_eq!(questions.take("owner", "rq_invented"), None);
        assert_eq!(questions.take("owner", &state).as_deref(), Some("a"));
        assert_eq!(questions.take("owner", &state), None);
    }

    #[test]
    fn the_oldest_makes_room() {
        let questions = Questions::default();
        let first = questions
            .keep("owner".to_owned(), "first".to_owned())
            .expect("random");
        for number in 0..limits::QUESTIONS {
            questions
                .keep("owner".to_owned(), number.to_string())
                .expect("random");
        }
        assert_eq!(questions.take("owner", &first), None);
    }
}
