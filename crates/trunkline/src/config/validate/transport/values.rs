//! Values of a transport: headers, variables, and strings that may contain references.

use std::collections::HashMap;

use super::TransportReader;
use crate::config::decode::{NamedValues, WithSpan};
use crate::config::diagnostic::Code;
use crate::config::jsonc::ObjectKey;
use crate::config::raw::VariableEntry;
use crate::config::redact::quoted;
use crate::config::source::Span;
use crate::config::template::{ReferenceSource, Template, has_foreign_reference};
use crate::config::transport::TRANSPORT_HEADERS;

impl TransportReader<'_, '_> {
    pub(super) fn headers(
        &mut self,
        written: Option<&WithSpan<NamedValues<Box<str>>>>,
    ) -> Vec<(Box<str>, Template)> {
        let entries = written.map(|headers| headers.value.0.as_slice()).unwrap_or_default();
        let mut headers = Vec::with_capacity(entries.len());
        let mut first_uses = HashMap::new();
        for (key, value) in entries {
            let first = *first_uses.entry(key.text.to_ascii_lowercase()).or_insert(key.span);
            if first != key.span {
                self.decoder.duplicate_key(key, first);
            }
            if !self.is_sendable(key, value) {
                continue;
            }
            if let Some(template) = self.template(&value.value, value.span) {
                headers.push((key.text.clone(), template));
            }
        }
        headers
    }

    /// Whether a header may be sent; reports the reason if not.
    pub(super) fn is_sendable(&mut self, key: &ObjectKey, value: &WithSpan<Box<str>>) -> bool {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let name = quoted(&key.text);
        if key.text.is_empty() || !key.text.bytes().all(token) {
            let message = format!("{name} is not the name of a header");
            self.decoder.push(self.decoder.error(Code::BadHeader, key.span, message));
            return false;
        }
        if TRANSPORT_HEADERS.contains(&key.text.to_ascii_lowercase().as_str()) {
            let message =
                format!("the header {name} belongs to the transport; this one is not sent");
            let found = self.decoder.warning(Code::BadHeader, key.span, message);
            self.decoder.push(found.help("remove it"));
            return false;
        }
        if value.value.chars().any(|character| character.is_control() && character != '\t') {
            let message = format!("the value of the header {name} cannot be sent");
            let found = self.decoder.error(Code::BadHeader, value.span, message);
            self.decoder.push(found.label("it holds a line break or control character"));
            return false;
        }
        true
    }

    pub(super) fn variables(
        &mut self,
        written: Option<&WithSpan<NamedValues<VariableEntry>>>,
    ) -> Vec<(Box<str>, Option<Template>)> {
        let entries = written.map(|env| env.value.0.as_slice()).unwrap_or_default();
        let mut variables = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let odd = |it: char| it == '=' || it == ':' || it == '\0' || it.is_whitespace();
            if key.text.is_empty() || key.text.contains(odd) {
                let message = "this is not the name of a variable";
                self.decoder.push(self.decoder.error(Code::BadVariable, key.span, message));
                continue;
            }
            let template = match &value.value {
                VariableEntry::Unset => None,
                VariableEntry::Set(text) => match self.template(text, value.span) {
                    Some(template) => Some(template),
                    None => continue,
                },
            };
            variables.push((key.text.clone(), template));
        }
        variables
    }

    pub(super) fn templates(
        &mut self,
        written: Option<&WithSpan<Vec<WithSpan<Box<str>>>>>,
    ) -> Vec<Template> {
        let items = written.map(|items| items.value.as_slice()).unwrap_or_default();
        items.iter().filter_map(|item| self.template(&item.value, item.span)).collect()
    }

    pub(super) fn optional(&mut self, written: Option<&WithSpan<Box<str>>>) -> Option<Template> {
        written.and_then(|written| self.template(&written.value, written.span))
    }

    /// Parses references. `None` means that one is invalid, which was reported.
    pub(super) fn template(&mut self, text: &str, span: Span) -> Option<Template> {
        if text.contains('\0') {
            let message = "this text holds a NUL character, which no program or server accepts";
            self.decoder.push(self.decoder.error(Code::BadVariable, span, message));
            return None;
        }
        let template = match Template::parse(text, self.dialect.spelling()) {
            Ok(template) => template,
            Err(bad) => {
                let found = self.decoder.error(Code::BadReference, span, bad.message);
                self.decoder.push(found.help(bad.help));
                return None;
            }
        };
        if has_foreign_reference(text, self.dialect.spelling()) {
            let message = "this is passed on as it stands, where other hosts fill in a variable";
            let found = self.decoder.warning(Code::BadReference, span, message);
            self.decoder.push(found.help("write `${VAR}` to refer to a variable"));
        }
        self.check_inputs(&template, span);
        Some(template)
    }

    pub(super) fn check_inputs(&mut self, template: &Template, span: Span) {
        for reference in template.references() {
            let ReferenceSource::Input(id) = reference.target() else { continue };
            if self.inputs.contains_key(id) {
                continue;
            }
            let message = format!("`{reference}` refers to an input that `inputs` does not have");
            let near = self.decoder.closest_match(id, self.inputs.keys().map(AsRef::as_ref));
            let found = self.decoder.error(Code::UnknownInput, span, message);
            self.decoder.push(found.maybe_help(near));
        }
    }
}
