//! Servers of mcporter: `mcpServers` in `mcporter.json`, where `command` may be a whole command line and the token of
//! a server has a key of its own.

use super::nodes::{ObjectParts, member, renamed, string, variable};
use super::{SERVERS, Translator};
use crate::config::diagnostic::{Code, Severity};
use crate::config::jsonc::{Node, ObjectMember, Value};
use crate::config::source::Span;

/// The key with hosts whose files mcporter reads too.
const IMPORTS: &str = "imports";

const AUTHORIZATION: &str = "Authorization";

/// Characters by which a word is an argument, and not the next part of a path with spaces.
const ARGUMENT_SIGNS: [char; 5] = ['-', '/', '.', '~', '@'];

impl Translator<'_> {
    pub(super) fn mcporter(&mut self, root: Node) -> Node {
        let Value::Object(members) = root.value else { return root };
        let mut kept = Vec::with_capacity(members.len());
        for it in members {
            match &*it.key.text {
                SERVERS => {
                    let value = self.entries(it.value, Self::mcporter_entry);
                    kept.push(ObjectMember { key: it.key, value });
                }
                IMPORTS => self.imports(&it),
                _ => kept.push(it),
            }
        }
        Node { span: root.span, value: Value::Object(kept) }
    }

    fn imports(&mut self, it: &ObjectMember) {
        if !matches!(&it.value.value, Value::Array(hosts) if hosts.is_empty()) {
            let message =
                "`imports` is kept and has no effect: the files of other hosts are not followed";
            self.note(Severity::Note, Code::ForeignKey, it.key.span, message);
        }
    }

    fn mcporter_entry(&mut self, entry: Vec<ObjectMember>) -> Vec<ObjectMember> {
        let has_args = entry.iter().any(|it| &*it.key.text == "args" && !is_empty(&it.value));
        let (mut members, mut headers) = (Vec::new(), ObjectParts::default());
        let (mut token, mut token_variable) = (None, None);
        for it in entry {
            match &*it.key.text {
                "command" | "executable" => {
                    let value = if has_args { it.value } else { self.command_line(it.value) };
                    members.push(renamed("command", ObjectMember { key: it.key, value }));
                }
                "headers" => members.extend(headers.add_all(it)),
                "bearerToken" | "bearer_token" => token = authorization(it, str::to_owned),
                "bearerTokenEnv" | "bearer_token_env" => {
                    token_variable = authorization(it, variable);
                }
                "base_url" | "server_url" => members.push(renamed("url", it)),
                "allowed_tools" => members.push(renamed("allowTools", it)),
                "blocked_tools" => members.push(renamed("denyTools", it)),
                _ => members.push(it),
            }
        }
        // As in mcporter, the variable is preferred to the token, and both to a header.
        if let Some((key, it)) = token_variable.or(token) {
            headers.retain(|header| !header.eq_ignore_ascii_case(AUTHORIZATION));
            headers.add(key, it);
        }
        members.extend(headers.into_member("headers"));
        members
    }

    /// A command line as the list of its words. Any other value is unchanged.
    fn command_line(&mut self, node: Node) -> Node {
        let Value::String(line) = &node.value else { return node };
        if !line.trim().contains([' ', '\t', '"', '\'']) {
            return node;
        }
        if may_be_path(line) {
            let message =
                "this may be a path with spaces or a command line; it is taken as one program";
            self.note(Severity::Note, Code::CommandLine, node.span, message);
            return node;
        }
        let words = words(line).into_iter().map(|word| string(word, node.span));
        Node { span: node.span, value: Value::Array(words.collect()) }
    }
}

/// The header with a token; `None` if there is no token.
fn authorization(
    it: ObjectMember,
    written: impl Fn(&str) -> String,
) -> Option<(Span, ObjectMember)> {
    let key = it.key.span;
    let value = match &it.value.value {
        Value::Null => return None,
        Value::String(text) if text.is_empty() => return None,
        Value::String(text) => string(format!("Bearer {}", written(text)), it.value.span),
        _ => it.value,
    };
    Some((key, member(AUTHORIZATION, key, value)))
}

fn is_empty(args: &Node) -> bool {
    match &args.value {
        Value::Array(items) => items.is_empty(),
        Value::Null => true,
        _ => false,
    }
}

/// Whether a command could be the path of a program with spaces. mcporter looks whether there is such a file, which is
/// not known here.
fn may_be_path(line: &str) -> bool {
    let line = line.trim();
    let is_path = ["/", "./", "../", "~/"].iter().any(|start| line.starts_with(start));
    if !(is_path || is_drive_path(line)) || line.contains(['"', '\'']) {
        return false;
    }
    let mut words = line.split_whitespace();
    let folder = words.next().and_then(|first| first.rsplit(['/', '\\']).nth(1));
    let is_in_bin = matches!(folder, Some("bin" | ".bin" | "sbin"));
    let has_argument = words.clone().any(|word| word.starts_with(ARGUMENT_SIGNS));
    !is_in_bin && !has_argument && words.any(|word| word.contains(['/', '\\']))
}

/// Whether a path begins with the letter of a drive, so that backslashes are separators.
fn is_drive_path(line: &str) -> bool {
    matches!(line.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic())
}

/// The words of a command line: separated by white space outside of quotes and references. A backslash takes the next
/// character as it is.
fn words(line: &str) -> Vec<String> {
    let has_escapes = !is_drive_path(line.trim());
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let (mut quote, mut is_reference) = (None, false);
    let mut rest = line.trim().chars();
    while let Some(next) = rest.next() {
        is_reference |= next == '$' && is_reference_body(rest.as_str());
        let taken = match (next, quote) {
            _ if is_reference => {
                is_reference = next != '}';
                Some(next)
            }
            ('\\', _) if has_escapes => Some(rest.next().unwrap_or(next)),
            ('"' | '\'', None) => {
                quote = Some(next);
                None
            }
            (_, Some(open)) if open == next => {
                quote = None;
                None
            }
            (' ' | '\t', None) => {
                words.extend(word.take());
                continue;
            }
            _ => Some(next),
        };
        word.get_or_insert_default().extend(taken);
    }
    words.extend(word);
    words
}

/// Whether a text after `$` is the rest of a reference such as `${NAME}`.
fn is_reference_body(text: &str) -> bool {
    text.starts_with('{') && text.contains('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_into_words() {
        for (line, expected) in [
            ("python3 /x/slow.py", &["python3", "/x/slow.py"][..]),
            ("  npx  -y\tsrv ", &["npx", "-y", "srv"]),
            (r#"sh -c "echo 'a b'" '"'"#, &["sh", "-c", "echo 'a b'", "\""]),
            (r"my\ program a\\b", &["my program", r"a\b"]),
            ("srv --name '' x", &["srv", "--name", "", "x"]),
            ("${DIR:-/a b}/srv x", &["${DIR:-/a b}/srv", "x"]),
            (r"C:\tools\srv.exe --a 'b c'", &[r"C:\tools\srv.exe", "--a", "b c"]),
            ("srv 'open x", &["srv", "open x"]),
            (r"srv x\", &["srv", r"x\"]),
            ("srv ${open x", &["srv", "${open", "x"]),
            ("é ü'ö ä'", &["é", "üö ä"]),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn a_path_with_spaces_is_a_program() {
        for path in ["/opt/my tools/x", "/Applications/My App.app/run", r"C:\Program Files\x.exe"] {
            assert!(may_be_path(path), "{path}");
        }
        for line in [
            "python3 /x/slow.py",
            "/usr/bin/node dist/index.js",
            "/opt/x/server stdio",
            "./node_modules/.bin/srv stdio",
            "/opt/x --port 3",
            "'/opt/my tools/x' stdio",
        ] {
            assert!(!may_be_path(line), "{line}");
        }
    }
}
