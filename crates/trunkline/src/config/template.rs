//! Values that refer to secrets: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${file:path}` and
//! their relatives in other hosts. Here they are only read; nothing is filled in.

use std::fmt;

use super::redact;
use super::secret::MASK;

/// A value that may hold references.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Literal(Box<str>),
    Reference(Reference),
}

/// Something a value refers to.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    target: Target,
    default: Option<Box<str>>,
    written: Box<str>,
}

/// What a reference points at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An environment variable.
    Variable(Box<str>),
    /// The content of a file, without the line ending at its end.
    File(Box<str>),
    /// An answer the user gives, declared under `inputs`.
    Input(Box<str>),
    /// The folder the configuration belongs to.
    WorkspaceFolder,
    /// The last part of the folder the configuration belongs to.
    WorkspaceFolderName,
    /// The user's home directory.
    UserHome,
    /// The separator of paths.
    PathSeparator,
}

/// Which spellings count as references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `${…}`.
    Dollar,
    /// `${…}`, and opencode's `{env:…}` and `{file:…}`.
    DollarAndBraces,
}

/// Why a reference cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadReference {
    pub(crate) message: String,
    pub(crate) help: String,
}

impl Template {
    pub(crate) fn parse(text: &str, spelling: Spelling) -> Result<Self, BadReference> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(opener) = next_opener(rest, spelling) {
            literal.push_str(&rest[..opener.at]);
            if opener.escaped {
                literal.push_str("${");
                rest = &rest[opener.at + "$${".len()..];
                continue;
            }
            let after = &rest[opener.at + opener.length..];
            let end = after.find('}').ok_or_else(|| unclosed(&rest[opener.at..]))?;
            let written = &rest[opener.at..opener.at + opener.length + end + 1];
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal).into()));
            }
            parts.push(Part::Reference(Reference::parse(&after[..end], written)?));
            rest = &after[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.into()));
        }
        Ok(Self { parts })
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Everything this value refers to.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Reference(reference) => Some(reference),
        })
    }

    /// The value itself, when it refers to nothing.
    pub fn as_literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The value for showing where it is probably no credential: as written, with those parts
    /// hidden that look like one.
    pub fn shown(&self) -> String {
        self.render(redact::redacted)
    }

    /// The value for showing where it probably is a credential: references as written, all other
    /// text as `***`.
    pub fn masked(&self) -> String {
        self.render(|_| MASK.to_owned())
    }

    fn render(&self, literal: impl Fn(&str) -> String) -> String {
        let part = |part: &Part| match part {
            Part::Literal(text) => literal(text),
            Part::Reference(reference) => reference.to_string(),
        };
        self.parts.iter().map(part).collect()
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

impl Reference {
    fn parse(inner: &str, written: &str) -> Result<Self, BadReference> {
        if inner.contains("${") {
            return Err(bad(written, "a reference inside a reference is not supported"));
        }
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default.into())),
            None => (inner, None),
        };
        let target = Target::parse(name).ok_or_else(|| unknown(written))?;
        Ok(Self { target, default, written: written.into() })
    }

    /// What it points at.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What stands in when it points at nothing.
    pub(crate) fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }
}

impl fmt::Display for Reference {
    /// As it was written, without its default: that may be a secret of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.written.split_once(":-") {
            Some((before, _)) => write!(f, "{before}:-{MASK}}}"),
            None => f.write_str(&self.written),
        }
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Target {
    fn parse(name: &str) -> Option<Self> {
        match name.split_once(':') {
            Some(("env", name)) => variable(name),
            Some(("file", path)) if !path.is_empty() => Some(Self::File(path.into())),
            Some(("input", id)) if !id.is_empty() => Some(Self::Input(id.into())),
            Some(_) => None,
            None => match name {
                "workspaceFolder" => Some(Self::WorkspaceFolder),
                "workspaceFolderBasename" => Some(Self::WorkspaceFolderName),
                "userHome" => Some(Self::UserHome),
                "pathSeparator" | "/" => Some(Self::PathSeparator),
                name => variable(name),
            },
        }
    }
}

fn variable(name: &str) -> Option<Target> {
    let mut bytes = name.bytes();
    let first = bytes.next()?;
    let starts = first.is_ascii_alphabetic() || first == b'_';
    let continues = bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (starts && continues).then(|| Target::Variable(name.into()))
}

/// Where a reference opens in a text.
struct Opener {
    at: usize,
    length: usize,
    escaped: bool,
}

fn next_opener(text: &str, spelling: Spelling) -> Option<Opener> {
    let dollar = text.find("${").map(|at| {
        let escaped = text[..at].ends_with('$');
        Opener { at: at - usize::from(escaped), length: "${".len(), escaped }
    });
    let braces = match spelling {
        Spelling::Dollar => None,
        Spelling::DollarAndBraces => ["{env:", "{file:"]
            .iter()
            .filter_map(|opener| text.find(opener))
            .min()
            .map(|at| Opener { at, length: "{".len(), escaped: false }),
    };
    match (dollar, braces) {
        // In `${env:X}` the brace belongs to the dollar before it.
        (Some(dollar), Some(braces)) if braces.at < dollar.at => Some(braces),
        (Some(dollar), _) => Some(dollar),
        (None, braces) => braces,
    }
}

fn bad(written: &str, message: &str) -> BadReference {
    let help = "write `$${` for a literal `${`".to_owned();
    BadReference { message: format!("`{}`: {message}", without_default(written)), help }
}

fn unclosed(written: &str) -> BadReference {
    let opener = if written.starts_with('$') { "${" } else { "{" };
    BadReference {
        message: format!("a reference that starts with `{opener}` is never closed"),
        help: "add `}`, or write `$${` for a literal `${`".to_owned(),
    }
}

fn unknown(written: &str) -> BadReference {
    BadReference {
        message: format!("`{}` is not a reference that can be filled in", without_default(written)),
        help:
            "known are `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${file:path}`, `${input:id}`, \
               `${workspaceFolder}` and `${userHome}`; write `$${` for a literal `${`"
                .to_owned(),
    }
}

fn without_default(written: &str) -> String {
    match written.split_once(":-") {
        Some((before, _)) => format!("{before}:-{MASK}}}"),
        None => written.to_owned(),
    }
}

/// Another host's spelling of a reference that is passed on as it stands here: a whole value of
/// `$VAR`, `$env:VAR` or `%VAR%`. Returns the variable's name.
pub(crate) fn foreign_reference(text: &str) -> Option<&str> {
    let name = text
        .strip_prefix("$env:")
        .or_else(|| text.strip_prefix('$'))
        .or_else(|| text.strip_prefix('%').and_then(|rest| rest.strip_suffix('%')))?;
    let constant = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (variable(name).is_some() && name.bytes().all(constant)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str, spelling: Spelling) -> Vec<Target> {
        let template = Template::parse(text, spelling).unwrap();
        template.references().map(|reference| reference.target().clone()).collect()
    }

    #[test]
    fn every_documented_form_is_a_reference() {
        let text = "${A}${B:-x}${env:C}${env:D:-y}${file:~/t}${input:gh}${workspaceFolder}${/}";
        let expected = [
            Target::Variable("A".into()),
            Target::Variable("B".into()),
            Target::Variable("C".into()),
            Target::Variable("D".into()),
            Target::File("~/t".into()),
            Target::Input("gh".into()),
            Target::WorkspaceFolder,
            Target::PathSeparator,
        ];
        assert_eq!(targets(text, Spelling::Dollar), expected);
    }

    #[test]
    fn braces_alone_are_references_only_in_an_opencode_file() {
        let text = "Bearer {env:A} {file:b} ${env:C}";
        assert_eq!(targets(text, Spelling::Dollar), [Target::Variable("C".into())]);
        assert_eq!(targets(text, Spelling::DollarAndBraces).len(), 3);
    }

    #[test]
    fn a_doubled_dollar_is_a_literal_one() {
        let template = Template::parse("a$${B}c $5", Spelling::Dollar).unwrap();
        assert_eq!(template.as_literal(), Some("a${B}c $5"));
    }

    #[test]
    fn what_cannot_be_a_reference_is_an_error() {
        for text in ["${", "${}", "${a b}", "${command:x}", "${A:-${B}}", "${file:}", "${1A}"] {
            assert!(Template::parse(text, Spelling::Dollar).is_err(), "{text}");
        }
    }

    #[test]
    fn literals_and_defaults_do_not_show() {
        let template = Template::parse("Bearer sesame${T:-open}", Spelling::Dollar).unwrap();
        assert_eq!(template.masked(), "***${T:-***}");
        assert_eq!(format!("{template:?}"), "***${T:-***}");
    }

    #[test]
    fn other_hosts_references_are_recognised_only_as_whole_values() {
        assert_eq!(foreign_reference("$MY_KEY"), Some("MY_KEY"));
        assert_eq!(foreign_reference("%MY_KEY%"), Some("MY_KEY"));
        assert_eq!(foreign_reference("$env:MY_KEY"), Some("MY_KEY"));
        assert_eq!(foreign_reference("pa$WORD"), None);
        assert_eq!(foreign_reference("$word"), None);
    }
}
