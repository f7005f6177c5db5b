//! Extracts the lines of a server's standard error that contain the reason of its exit, out of
//! stack traces and closing remarks.

/// Limit on lines that are repeated in an error.
const MAX_LINES: usize = 3;

/// Prefixes that package managers put before each line of an error.
const PREFIXES: &[&str] = &["npm error", "npm ERR!", "npm WARN", "npm warn"];

/// Beginnings of lines that belong to a stack trace, or follow an error.
const TRACE_STARTS: &[&str] = &[
    "at ",
    "File \"",
    "throw ",
    "node:internal/",
    "Node.js v",
    "code: '",
    "requireStack:",
    "A complete log of this run",
    "Traceback (most recent call last)",
    "note: run with `RUST_BACKTRACE",
    "goroutine ",
    "... ",
];

/// Substrings of a line that contains a reason.
const REASONS: &[&str] = &[
    "cannot",
    "can't",
    "could not",
    "denied",
    "does not",
    "error:",
    "exception",
    "failed",
    "failure",
    "fatal",
    "invalid",
    "is not",
    "missing",
    "must ",
    "no such",
    "no solution",
    "not allowed",
    "not found",
    "panic",
    "refused",
    "required",
    "unable",
    "unexpected",
    "unknown",
    "unrecognized",
];

/// The lines that contain the reason of an exit: those with a reason, else the last ones that are
/// not part of a stack trace, else the last ones.
pub(in crate::connection) fn reason_lines(lines: &[String]) -> Vec<&str> {
    let texts: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    let mut reasons: Vec<&str> = Vec::new();
    let (mut goes_on, mut is_after_error) = (false, false);
    for text in texts.iter().copied() {
        // `error: …` is followed by an indented line that says what to do, in many programs.
        let is_advice = is_after_error && text.starts_with("  ") && !is_trace(text);
        let says_why = is_advice || (!is_trace(text) && (goes_on || has_reason(text)));
        // `thread 'main' panicked at src/main.rs:1:2:` is followed by its reason.
        goes_on = says_why && text.ends_with(':');
        is_after_error = text.starts_with("error: ");
        let text = if is_advice { text.trim_start() } else { text };
        if says_why && !reasons.contains(&text) {
            reasons.push(text);
        }
    }
    if !reasons.is_empty() {
        return last(&reasons);
    }
    let others: Vec<&str> = texts.iter().copied().filter(|text| !is_trace(text)).collect();
    last(if others.is_empty() { &texts } else { &others })
}

fn last<'l>(lines: &[&'l str]) -> Vec<&'l str> {
    lines.iter().skip(lines.len().saturating_sub(MAX_LINES)).copied().collect()
}

/// A line without the prefix of its program.
fn content(line: &str) -> &str {
    let line = line.trim();
    PREFIXES.iter().find_map(|prefix| line.strip_prefix(prefix)).unwrap_or(line).trim()
}

fn is_trace(line: &str) -> bool {
    let content = content(line);
    TRACE_STARTS.iter().any(|start| content.starts_with(start))
        || !content.chars().any(char::is_alphabetic)
}

fn has_reason(line: &str) -> bool {
    let content = content(line).to_lowercase();
    REASONS.iter().any(|reason| content.contains(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(text: &str) -> Vec<String> {
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        reason_lines(&lines).into_iter().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn the_module_that_node_does_not_find_is_picked() {
        let text = "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\n\
            Error: Cannot find module '/srv/server.js'\n    at Module._resolveFilename (node:internal)\n\
            \x20   at node:internal/main/run_main_module:28:49 {\n  code: 'MODULE_NOT_FOUND',\n\
            \x20 requireStack: []\n}\n\nNode.js v20.20.2";
        assert_eq!(picked(text), ["Error: Cannot find module '/srv/server.js'"]);
    }

    #[test]
    fn the_package_that_npm_does_not_find_is_picked() {
        let text = "npm error code E404\n\
            npm error 404 Not Found - GET https://registry.example/@x%2fy - Not found\n\
            npm error 404\nnpm error 404  '@x/y@*' is not in this registry.\nnpm error 404\n\
            npm error 404 Note that you can also install from a\n\
            npm error 404 tarball, folder, http url, or git url.\n\
            npm error A complete log of this run can be found in: /var/log/npm/x-debug-0.log";
        let [first, second] = &picked(text)[..] else { panic!("{:?}", picked(text)) };
        assert!(first.contains("404 Not Found - GET"), "{first}");
        assert!(second.contains("'@x/y@*' is not in this registry"), "{second}");
    }

    #[test]
    fn exceptions_and_panics_are_picked_with_their_message() {
        let python = "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n\
            ModuleNotFoundError: No module named 'x'";
        assert_eq!(picked(python), ["ModuleNotFoundError: No module named 'x'"]);
        let rust = "thread 'main' panicked at src/main.rs:1:2:\nthe port is taken\n\
            note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";
        let expected = ["thread 'main' panicked at src/main.rs:1:2:", "the port is taken"];
        assert_eq!(picked(rust), expected);
    }

    #[test]
    fn without_a_reason_the_last_lines_are_picked() {
        assert_eq!(picked("a\nb\nc\nd\n}"), ["b", "c", "d"]);
        assert_eq!(picked("}\n---"), ["}", "---"]);
        assert!(reason_lines(&[]).is_empty());
    }
}
