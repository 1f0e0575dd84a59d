use super::{Block, blocks_in_markdown, blocks_in_source, markdown_fixtures};

const SOURCE: &str = "\
/// A tank.
///
/// ```beamtalk
/// Tank new level   // => 0
/// ```
Value subclass: Tank
  field: level = 0

  /// Not run: no expectation.
  ///
  /// ```beamtalk
  /// Tank new
  /// ```
  first => 1

  /// ```beamtalk
  /// t := Tank new
  ///
  /// t plus: 1
  /// // => 1
  /// ```
  plus: n => self.level + n
";

#[test]
fn blocks_are_named_after_what_they_document() {
    let unit = crate::parse_file(SOURCE).unit;
    assert_eq!(
        blocks_in_source(SOURCE, &unit),
        [
            Block {
                name: "Tank (doc)".to_owned(),
                line: 4,
                text: "Tank new level   // => 0".to_owned()
            },
            Block {
                name: "Tank>>plus: (doc)".to_owned(),
                line: 17,
                text: "t := Tank new\n\nt plus: 1\n// => 1".to_owned(),
            },
        ]
    );
}

#[test]
fn other_fences_are_left_alone() {
    let text = "# Title\n```erlang\n1. // => 1\n```\n```beamtalk\n1 // => 1\n```\n";
    assert_eq!(
        blocks_in_markdown(text),
        [Block {
            name: String::new(),
            line: 6,
            text: "1 // => 1".to_owned()
        }]
    );
}

#[test]
fn fixtures_are_named_in_comments() {
    assert_eq!(
        markdown_fixtures("text\n<!-- btfixture: test/fixtures/Lamp.bt -->\n"),
        ["test/fixtures/Lamp.bt"]
    );
}
