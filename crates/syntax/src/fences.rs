//! Blocks of code between fences, in Markdown and in documentation comments.

/// A fenced block that has an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The line of its first input.
    pub line: usize,
    pub text: String,
}

/// The blocks of a Markdown text that are run, in order.
pub fn in_markdown(text: &str) -> Vec<Fence> {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .collect();
    in_lines(&lines)
}

/// Fenced `beamtalk` blocks with at least one expectation, in numbered lines.
pub fn in_lines(lines: &[(usize, &str)]) -> Vec<Fence> {
    let mut blocks = Vec::new();
    let mut open: Option<(bool, usize, Vec<&str>)> = None;
    for (number, line) in lines {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(language)) => open = Some((language.trim() == "beamtalk", number + 1, Vec::new())),
            (Some(_), Some(_)) => {
                if let Some((true, line, content)) = open.take()
                    && content.iter().any(|line| line.contains("// =>"))
                {
                    let text = content.join("\n");
                    blocks.push(Fence { line, text });
                }
            }
            (Some((_, _, content)), None) => content.push(line),
            (None, None) => {}
        }
    }
    blocks
}
