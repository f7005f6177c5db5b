//! Parses values with references: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${file:path}`,
//! `${secret:NAME}` and their equivalents in other hosts. `resolve` replaces them later.

#![expect(
    clippy::string_slice,
    reason = "a parser of its own text: every offset comes from this text, and fuzzing covers it"
)]

use std::fmt;

use super::redact::{self, REFERENCE, RedactionInput, is_like_credential};
use super::secret::MASK;

/// A value that may contain references.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Template {
    parts: Vec<TemplatePart>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum TemplatePart {
    Literal(Box<str>),
    Reference(Reference),
}

/// A reference in a value.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    target: ReferenceSource,
    default: Option<Box<str>>,
    written: Box<str>,
}

/// The source of a reference's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReferenceSource {
    /// An environment variable.
    Variable(Box<str>),
    /// The content of a file, without a trailing line ending.
    File(Box<str>),
    /// A value that the user enters, declared under `inputs`.
    Input(Box<str>),
    /// A value in a store for secrets, by its name.
    Secret(SecretPlace, Box<str>),
    /// The workspace directory of the configuration.
    WorkspaceFolder,
    /// The last component of the workspace directory.
    WorkspaceFolderName,
    /// The user's home directory.
    UserHome,
    /// The path separator.
    PathSeparator,
}

/// The store that a reference reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SecretPlace {
    /// The store of the host: `${secret:NAME}`.
    Store,
    /// The keychain of the operating system, also if the host uses another store: `${keychain:NAME}`.
    Keychain,
}

/// Longest name of a secret.
const MAX_SECRET_NAME_BYTES: usize = 128;

/// Whether a text can be the name of a secret: letters, digits, `_`, `-` and `.`, at most 128 of them.
pub fn is_valid_secret_name(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=MAX_SECRET_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_valid)
}

/// The supported syntax of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReferenceSyntax {
    /// None: the host of these values has no references.
    None,
    /// `${…}`.
    Dollar,
    /// `${…}`, and opencode's `{env:…}` and `{file:…}`.
    DollarAndBraces,
    /// `${…}`, and Gemini CLI's `$NAME`.
    DollarAndName,
    /// `${…}`, and mcporter's `$env:NAME`.
    DollarAndEnv,
}

impl ReferenceSyntax {
    /// The length of the prefix and the name of a reference without braces at the start of a text.
    fn name_without_braces(self, text: &str) -> Option<(usize, usize)> {
        let prefix = match self {
            Self::DollarAndName => "$",
            Self::DollarAndEnv => "$env:",
            Self::None | Self::Dollar | Self::DollarAndBraces => return None,
        };
        let name = text.strip_prefix(prefix)?;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = name.bytes().take_while(is_part).count();
        variable(&name[..length])?;
        Some((prefix.len(), length))
    }
}

/// A malformed reference.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidReference {
    pub(crate) message: String,
    pub(crate) help: String,
}

impl Template {
    pub(crate) fn parse(text: &str, spelling: ReferenceSyntax) -> Result<Self, InvalidReference> {
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
            let (end, closing) = match opener.name {
                Some(length) => (length, 0),
                None => (after.find('}').ok_or_else(unclosed)?, 1),
            };
            let written = &rest[opener.at..opener.at + opener.length + end + closing];
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(std::mem::take(&mut literal).into()));
            }
            let reference = match opener.name {
                Some(_) => Reference::parse(&format!("env:{}", &after[..end]), written)?,
                None => Reference::parse(&after[..end], written)?,
            };
            parts.push(TemplatePart::Reference(reference));
            rest = &after[end + closing..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal.into()));
        }
        Ok(Self { parts })
    }

    /// A value without references.
    pub(crate) fn literal(text: &str) -> Self {
        Self { parts: vec![TemplatePart::Literal(text.into())] }
    }

    pub(crate) fn parts(&self) -> &[TemplatePart] {
        &self.parts
    }

    /// All references in this value.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Literal(_) => None,
            TemplatePart::Reference(reference) => Some(reference),
        })
    }

    /// The value, if it has no references.
    pub fn as_literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [TemplatePart::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The value for display where a credential is unlikely, such as a program or a URL: as
    /// written, with possible credentials masked.
    pub fn redacted(&self) -> String {
        redact::argument(&self.redaction_input())
    }

    /// The value as written, with the defaults of its references masked, and the copy that is
    /// checked in its place.
    pub(crate) fn redaction_input(&self) -> RedactionInput {
        let text = self.render(str::to_owned);
        let judged = self.parts.iter().map(|part| match part {
            TemplatePart::Literal(literal) => literal.to_string(),
            TemplatePart::Reference(reference) => {
                let length = reference.to_string().len();
                char::from(REFERENCE).to_string().repeat(length)
            }
        });
        RedactionInput { text, judged: judged.collect() }
    }

    /// The value for display where a credential is likely: references as written, all other text as
    /// `***`.
    pub fn masked(&self) -> String {
        self.render(|_| MASK.to_owned())
    }

    fn render(&self, literal: impl Fn(&str) -> String) -> String {
        let part = |part: &TemplatePart| match part {
            TemplatePart::Literal(text) => literal(text),
            TemplatePart::Reference(reference) => reference.to_string(),
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
    fn parse(inner: &str, written: &str) -> Result<Self, InvalidReference> {
        if inner.contains("${") {
            return Err(nested());
        }
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default.into())),
            None => (inner, None),
        };
        let target = ReferenceSource::parse(name).ok_or_else(unknown)?;
        Ok(Self { target, default, written: written.into() })
    }

    /// The source of its value.
    pub fn target(&self) -> &ReferenceSource {
        &self.target
    }

    /// The reference exactly as written, its default included.
    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    /// The value used if the source has none.
    pub(crate) fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }
}

impl fmt::Display for Reference {
    /// Formats as written, with the default masked: it may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.written.split_once(":-") {
            // A credential in braces is still a credential.
            _ if is_like_credential(&self.written) => write!(f, "${{{MASK}}}"),
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

impl ReferenceSource {
    fn parse(name: &str) -> Option<Self> {
        match name.split_once(':') {
            Some(("env", name)) => variable(name),
            Some(("file", path)) if !path.is_empty() => Some(Self::File(path.into())),
            Some(("input", id)) if !id.is_empty() => Some(Self::Input(id.into())),
            Some(("secret", name)) => secret(SecretPlace::Store, name),
            Some(("keychain", name)) => secret(SecretPlace::Keychain, name),
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

/// Names that are not variables in `${NAME}`.
const NAMED_SOURCES: &[&str] =
    &["workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator"];

impl ReferenceSource {
    /// The canonical spelling of a reference to it, without a default.
    pub(crate) fn written(&self) -> String {
        format!("${{{}}}", self.inner())
    }

    fn inner(&self) -> String {
        match self {
            Self::Variable(name) if NAMED_SOURCES.contains(&&**name) => format!("env:{name}"),
            Self::Variable(name) => name.to_string(),
            Self::File(path) => format!("file:{path}"),
            Self::Input(id) => format!("input:{id}"),
            Self::Secret(SecretPlace::Store, name) => format!("secret:{name}"),
            Self::Secret(SecretPlace::Keychain, name) => format!("keychain:{name}"),
            Self::WorkspaceFolder => "workspaceFolder".to_owned(),
            Self::WorkspaceFolderName => "workspaceFolderBasename".to_owned(),
            Self::UserHome => "userHome".to_owned(),
            Self::PathSeparator => "pathSeparator".to_owned(),
        }
    }
}

impl Template {
    /// The value in the syntax of [`ReferenceSyntax::Dollar`], with every reference in its canonical spelling
    /// and its default. Not for display: literals and defaults may be secrets.
    pub(crate) fn canonical(&self) -> String {
        let part = |part: &TemplatePart| match part {
            TemplatePart::Literal(text) => text.replace("${", "$${"),
            TemplatePart::Reference(reference) => match &reference.default {
                Some(default) => format!("${{{}:-{default}}}", reference.target.inner()),
                None => reference.target.written(),
            },
        };
        self.parts.iter().map(part).collect()
    }
}

fn secret(place: SecretPlace, name: &str) -> Option<ReferenceSource> {
    is_valid_secret_name(name).then(|| ReferenceSource::Secret(place, name.into()))
}

fn variable(name: &str) -> Option<ReferenceSource> {
    let mut bytes = name.bytes();
    let first = bytes.next()?;
    let starts = first.is_ascii_alphabetic() || first == b'_';
    let continues = bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (starts && continues).then(|| ReferenceSource::Variable(name.into()))
}

/// The position of a reference in a text.
struct ReferenceStart {
    at: usize,
    length: usize,
    escaped: bool,
    /// The length of the name, if it has no braces.
    name: Option<usize>,
}

/// Returns the first opener. Checks every `$` and `{` once, so that parsing is linear in the length
/// of the text.
fn next_opener(text: &str, spelling: ReferenceSyntax) -> Option<ReferenceStart> {
    if spelling == ReferenceSyntax::None {
        return None;
    }
    let marks = text.match_indices(['$', '{']);
    marks.map(|(at, _)| at).find_map(|at| {
        let rest = &text[at..];
        let braces = rest.starts_with("{env:") || rest.starts_with("{file:");
        let start = ReferenceStart { at, length: "${".len(), escaped: false, name: None };
        if rest.starts_with("$${") {
            Some(ReferenceStart { escaped: true, ..start })
        } else if rest.starts_with("${") {
            Some(start)
        } else if braces && spelling == ReferenceSyntax::DollarAndBraces {
            Some(ReferenceStart { length: "{".len(), ..start })
        } else {
            let (length, name) = spelling.name_without_braces(rest)?;
            Some(ReferenceStart { length, name: Some(name), ..start })
        }
    })
}

/// None of these messages quotes the text: one that only looks like a reference may be a password.
fn nested() -> InvalidReference {
    InvalidReference {
        message: "a reference inside a reference is not supported".to_owned(),
        help: "write `$${` for a literal `${`".to_owned(),
    }
}

fn unclosed() -> InvalidReference {
    InvalidReference {
        message: "a reference is never closed".to_owned(),
        help: "add `}`, or write `$${` for a literal `${`".to_owned(),
    }
}

fn unknown() -> InvalidReference {
    InvalidReference {
        message: "this holds a reference that cannot be filled in".to_owned(),
        help:
            "known are `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${file:path}`, `${secret:NAME}`, \
               `${keychain:NAME}`, `${input:id}`, `${workspaceFolder}` and `${userHome}`; write `$${` for a literal `${`"
                .to_owned(),
    }
}

/// Whether a text contains a reference in another host's syntax, which is passed on unchanged:
/// `$VAR`, `$env:VAR`, `%VAR%`, `{{LIBRECHAT_…}}`, or opencode's braces where they are not supported.
pub(crate) fn has_foreign_reference(text: &str, spelling: ReferenceSyntax) -> bool {
    let name = |text: &str| {
        let constant =
            |byte: &u8| byte.is_ascii_uppercase() || *byte == b'_' || byte.is_ascii_digit();
        let length = text.bytes().take_while(|byte| constant(byte)).count();
        if length >= 3 && variable(&text[..length]).is_some() { length } else { 0 }
    };
    let dollar = |(at, _): (usize, &str)| {
        if spelling.name_without_braces(&text[at..]).is_some() {
            return false;
        }
        let rest = &text[at + 1..];
        name(rest.strip_prefix("env:").unwrap_or(rest)) > 0
    };
    let percent = |(at, _): (usize, &str)| {
        let rest = &text[at + 1..];
        rest[name(rest)..].starts_with('%') && name(rest) > 0
    };
    let braces = text.contains("{env:") || text.contains("{file:");
    text.match_indices('$').any(dollar)
        || text.match_indices('%').any(percent)
        || text.contains("{{LIBRECHAT_")
        || (spelling == ReferenceSyntax::Dollar
            && braces
            && !text.contains("${env:")
            && !text.contains("${file:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str, spelling: ReferenceSyntax) -> Vec<ReferenceSource> {
        let template = Template::parse(text, spelling).unwrap();
        template.references().map(|reference| reference.target().clone()).collect()
    }

    #[test]
    fn every_documented_form_is_a_reference() {
        let text = "${A}${B:-x}${env:C}${env:D:-y}${file:~/t}${input:gh}${secret:A.b-c}\
                    ${keychain:K}${workspaceFolder}${/}";
        let expected = [
            ReferenceSource::Variable("A".into()),
            ReferenceSource::Variable("B".into()),
            ReferenceSource::Variable("C".into()),
            ReferenceSource::Variable("D".into()),
            ReferenceSource::File("~/t".into()),
            ReferenceSource::Input("gh".into()),
            ReferenceSource::Secret(SecretPlace::Store, "A.b-c".into()),
            ReferenceSource::Secret(SecretPlace::Keychain, "K".into()),
            ReferenceSource::WorkspaceFolder,
            ReferenceSource::PathSeparator,
        ];
        assert_eq!(targets(text, ReferenceSyntax::Dollar), expected);
    }

    #[test]
    fn braces_alone_are_references_only_in_an_opencode_file() {
        let text = "Bearer {env:A} {file:b} ${env:C}";
        assert_eq!(targets(text, ReferenceSyntax::Dollar), [ReferenceSource::Variable("C".into())]);
        assert_eq!(targets(text, ReferenceSyntax::DollarAndBraces).len(), 3);
    }

    #[test]
    fn names_without_braces_are_references_only_in_files_of_two_hosts() {
        let text = "Bearer $A-$env:B ${C} $5 $userHome";
        let variables = |names: &[&str]| {
            names.iter().map(|name| ReferenceSource::Variable((*name).into())).collect::<Vec<_>>()
        };
        assert_eq!(targets(text, ReferenceSyntax::Dollar), variables(&["C"]));
        let gemini = ["A", "env", "C", "userHome"];
        assert_eq!(targets(text, ReferenceSyntax::DollarAndName), variables(&gemini));
        assert_eq!(targets(text, ReferenceSyntax::DollarAndEnv), variables(&["B", "C"]));
        assert!(!has_foreign_reference("$TOKEN", ReferenceSyntax::DollarAndName));
        let template = Template::parse("a $TOKEN", ReferenceSyntax::DollarAndName).unwrap();
        assert_eq!(template.canonical(), "a ${TOKEN}");
    }

    #[test]
    fn a_doubled_dollar_is_a_literal_one() {
        let template = Template::parse("a$${B}c $5", ReferenceSyntax::Dollar).unwrap();
        assert_eq!(template.as_literal(), Some("a${B}c $5"));
    }

    #[test]
    fn invalid_reference_is_an_error() {
        for text in
            ["${", "${}", "${a b}", "${command:x}", "${A:-${B}}", "${file:}", "${1A}", "${secret:}"]
        {
            assert!(Template::parse(text, ReferenceSyntax::Dollar).is_err(), "{text}");
        }
    }

    #[test]
    fn names_of_secrets_are_plain() {
        let long = "x".repeat(129);
        for name in ["", "a b", "a/b", "a:b", "größe", "a\n", long.as_str()] {
            assert!(!is_valid_secret_name(name), "{name}");
            let text = format!("${{secret:{name}}}");
            assert!(Template::parse(&text, ReferenceSyntax::Dollar).is_err(), "{name}");
        }
    }

    #[test]
    fn literals_and_defaults_do_not_show() {
        let template = Template::parse("Bearer sesame${T:-open}", ReferenceSyntax::Dollar).unwrap();
        assert_eq!(template.masked(), "***${T:-***}");
        assert_eq!(format!("{template:?}"), "***${T:-***}");
    }

    #[test]
    fn other_hosts_references_are_recognised() {
        for text in ["$MY_KEY", "Bearer $TOKEN", "%MY_KEY%", "$env:MY_KEY", "Bearer {env:K}"] {
            assert!(has_foreign_reference(text, ReferenceSyntax::Dollar), "{text}");
        }
        for text in ["pa$word", "$5", "100%", "${A}", "${env:A}", "$${A}", "%20%30"] {
            assert!(!has_foreign_reference(text, ReferenceSyntax::Dollar), "{text}");
        }
    }
}
