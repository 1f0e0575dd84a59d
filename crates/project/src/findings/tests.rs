use std::collections::BTreeMap;

use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::span::{LineIndex, Span};

use super::severity::{Setting, Warnings};
use super::{Finding, Level, Policy, human, json};

const SOURCE: &str = "Value subclass: Orbit\n  start =>\n\ta := Angle degrees: 30\n    ünd := a\n";

fn span_of(part: &str) -> Span {
    let start = SOURCE.find(part).unwrap() as u32;
    Span::new(start, start + part.len() as u32)
}

fn finding() -> Finding {
    let diagnostic = Diagnostic::warning(
        "W0302",
        span_of("Angle"),
        "class 'Angle' comes from 'vectors', a dependency of 'units'",
    )
    .with_category(Category::Dependency)
    .with_hint("add 'vectors' to [dependencies] in beamtalk.toml")
    .with_note(span_of("start"), "in this method");
    Finding::from(&diagnostic)
}

#[test]
fn a_warning_is_shown_with_its_source() {
    insta::assert_snapshot!(human::render("src/Orbit.bt", SOURCE, &finding(), false));
}

#[test]
fn each_severity_has_its_title() {
    let titles: Vec<String> = [Level::Error, Level::Warning, Level::Hint, Level::Lint]
        .into_iter()
        .map(|severity| {
            human::render(
                "a.bt",
                SOURCE,
                &Finding {
                    severity,
                    ..finding()
                },
                false,
            )
        })
        .map(|text| text.lines().next().unwrap_or("").to_owned())
        .collect();
    insta::assert_snapshot!(titles.join("\n"));
}

#[test]
fn json_has_one_based_columns_in_characters() {
    let index = LineIndex::new(SOURCE);
    let mut finding = finding();
    let name = span_of(":= a\n");
    finding.span = (name.start, name.end);
    insta::assert_snapshot!(json::render(&index, "src/Orbit.bt", SOURCE, &finding));
}

#[test]
fn spans_outside_the_text_do_not_panic() {
    for span in [
        (0, 0),
        (9_999, 10_000),
        (20, 3),
        (SOURCE.find('ü').unwrap() as u32 + 1, 9_999),
    ] {
        let finding = Finding { span, ..finding() };
        drop(human::render("a.bt", SOURCE, &finding, true));
        drop(human::render("a.bt", "", &finding, false));
    }
}

#[test]
fn the_table_decides_and_never_softens_errors() {
    let settings = BTreeMap::from([("dependency".to_owned(), Setting::Off)]);
    let policy = Policy {
        settings,
        ..Policy::default()
    };
    assert_eq!(policy.apply(&finding()), None);
    let error = Finding {
        severity: Level::Error,
        ..finding()
    };
    assert_eq!(
        policy.apply(&error).map(|finding| finding.severity),
        Some(Level::Error)
    );
}

#[test]
fn warnings_become_errors_except_the_spared_ones() {
    let policy = Policy {
        warnings: Warnings::AsErrors,
        ..Policy::default()
    };
    assert_eq!(
        policy.apply(&finding()).map(|finding| finding.severity),
        Some(Level::Error)
    );
    let spared = Finding {
        category: Some("unresolved-class".to_owned()),
        ..finding()
    };
    assert_eq!(
        policy.apply(&spared).map(|finding| finding.severity),
        Some(Level::Warning)
    );
}
