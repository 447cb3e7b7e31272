//! Forms that were sent: a second request of the same form changes nothing.

use std::collections::VecDeque;

use parking_lot::{Mutex, MutexGuard};

/// More than operators send while a page stays open; the oldest are forgotten.
const MAX_FORMS: usize = 10_000;

/// The forms that this process has carried out or is carrying out. Each rendering of a form has an id of its
/// own.
#[derive(Debug, Default)]
pub struct SentForms(Mutex<VecDeque<String>>);

impl SentForms {
    /// Whether the form is sent for the first time.
    pub(crate) fn begin(&self, form_id: &str) -> bool {
        let mut sent = self.lock();
        if sent.iter().any(|known| known == form_id) {
            return false;
        }
        if sent.len() == MAX_FORMS {
            sent.pop_front();
        }
        sent.push_back(form_id.to_owned());
        true
    }

    /// The change was refused: the form can be sent again.
    pub(crate) fn forget(&self, form_id: &str) {
        self.lock().retain(|known| known != form_id);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_is_sent_once_unless_it_was_refused() {
        let forms = SentForms::default();
        assert!(forms.begin("a"));
        assert!(!forms.begin("a"));
        forms.forget("a");
        assert!(forms.begin("a"));
        for number in 0..MAX_FORMS {
            assert!(forms.begin(&number.to_string()));
        }
        assert!(forms.begin("a"), "the oldest is forgotten");
    }
}
