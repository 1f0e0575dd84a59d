//! Text that somebody else wrote, as it is shown: nothing in it is invisible.

/// Controls, and what Unicode lets a reader ignore: marks, joiners, fillers, variation selectors, tags.
fn is_hidden(letter: char) -> bool {
    matches!(letter,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
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

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_is_invisible() {
        for letter in [
            '\u{85}',
            '\u{9b}',
            '\u{ad}',
            '\u{34f}',
            '\u{115f}',
            '\u{180e}',
            '\u{200b}',
            '\u{2028}',
            '\u{2060}',
            '\u{206a}',
            '\u{3164}',
            '\u{fe00}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{1b}',
        ] {
            let shown = escape(&format!("a{letter}b"));
            assert_eq!(shown, format!("a{}b", letter.escape_unicode()));
        }
        let plain = "tab\tand\nline, äß, 漢字, \u{a0}and \u{2014}";
        assert_eq!(escape(plain), plain);
    }
}
