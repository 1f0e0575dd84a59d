//! `--filter`: a substring, `Class>>selector`, or `/regex/`.

use beamtalk_project::Fault;
use regex::Regex;

#[derive(Clone, Debug)]
pub enum Filter {
    Substring(String),
    Test { class: String, selector: String },
    Regex(Regex),
}

/// Any match selects; no filters select everything.
#[derive(Clone, Debug, Default)]
pub struct Filters(Vec<Filter>);

impl Filters {
    pub fn parse(patterns: &[String]) -> Result<Self, Fault> {
        patterns
            .iter()
            .map(|pattern| Filter::parse(pattern))
            .collect::<Result<Vec<_>, _>>()
            .map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a test is selected; scripts and documentation have only a name.
    pub fn selects(&self, class: &str, name: &str) -> bool {
        let full = if name.is_empty() {
            class.to_owned()
        } else {
            format!("{class}>>{name}")
        };
        self.0.is_empty()
            || self.0.iter().any(|filter| match filter {
                Filter::Substring(text) => full.contains(text.as_str()),
                Filter::Test {
                    class: wanted,
                    selector,
                } => class == wanted && name == selector,
                Filter::Regex(regex) => regex.is_match(&full),
            })
    }
}

impl Filter {
    fn parse(pattern: &str) -> Result<Self, Fault> {
        if let Some(inner) = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            let regex = Regex::new(inner)
                .map_err(|error| Fault::usage("bad_filter", format!("--filter {pattern}: {error}")))?;
            return Ok(Filter::Regex(regex));
        }
        if let Some((class, selector)) = pattern.split_once(">>")
            && !class.trim().is_empty()
            && !selector.trim().is_empty()
        {
            return Ok(Filter::Test {
                class: class.trim().to_owned(),
                selector: selector.trim().to_owned(),
            });
        }
        Ok(Filter::Substring(pattern.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::Filters;

    fn selects(pattern: &str, class: &str, name: &str) -> bool {
        Filters::parse(&[pattern.to_owned()])
            .unwrap()
            .selects(class, name)
    }

    #[test]
    fn each_form_selects() {
        assert!(selects("Lamp", "LampTest", "testOn"));
        assert!(selects("LampTest>>testOn", "LampTest", "testOn"));
        assert!(!selects("LampTest>>testOn", "LampTest", "testOnly"));
        assert!(selects("/^Lamp.*On$/", "LampTest", "testOn"));
        assert!(!selects("/^On/", "LampTest", "testOn"));
        assert!(Filters::default().selects("A", "b"));
    }

    #[test]
    fn a_bad_regex_is_refused() {
        assert!(Filters::parse(&["/(/".to_owned()]).is_err());
    }
}
