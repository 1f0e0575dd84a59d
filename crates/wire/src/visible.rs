//! Text that somebody else wrote, as it is shown: nothing in it is invisible.

fn is_hidden(letter: char) -> bool {
    matches!(letter,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with everything visible: what steers a terminal or a reader is shown as `\u{…}`.
pub fn escape(text: &str) -> String {
    if !text.contains(is_hidden) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_hidden(letter) {
            shown.extend(letter.escape_unicode());
        } else {
            shown.push(letter);
        }
    }
    shown
}
