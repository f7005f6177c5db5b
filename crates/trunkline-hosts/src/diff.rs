//! Unified diffs, to show a change before it is made.

use std::path::Path;

use similar::TextDiff;

/// Lines that are shown before and after a change.
const CONTEXT_LINES: usize = 3;

/// The unified diff of two texts of a file. Empty if they are equal.
pub fn unified(path: &Path, before: &str, after: &str) -> String {
    let name = path.display().to_string();
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().context_radius(CONTEXT_LINES).header(&name, &name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_three_lines_of_context() {
        let before: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let after = before.replace("10\n", "ten\nand more\n");
        let expected = "--- a.json\n+++ a.json\n@@ -7,7 +7,8 @@\n 7\n 8\n 9\n-10\n+ten\n+and more\n 11\n 12\n 13\n";
        assert_eq!(unified(Path::new("a.json"), &before, &after), expected);
        assert_eq!(unified(Path::new("a.json"), &before, &before), "");
    }

    #[test]
    fn a_missing_line_break_is_shown() {
        let diff = unified(Path::new("a"), "x", "x\n");
        assert!(diff.contains("-x\n\\ No newline at end of file\n+x\n"), "{diff}");
        let diff = unified(Path::new("a"), "", "x\n");
        assert!(
            diff.contains("@@ -0,0 +1 @@\n+x\n") || diff.contains("@@ -1,0 +1 @@\n+x\n"),
            "{diff}"
        );
    }
}
