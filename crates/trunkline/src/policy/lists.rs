//! Allow and deny lists, prepared for matching.

use std::cell::OnceCell;
use std::collections::HashSet;

use crate::item::Item;
use crate::name::{NamePattern, TemplateForm, UriSpellings, normalised};

/// One list of upstream names, upstream URIs and patterns.
#[derive(Clone, Debug, Default)]
pub(super) struct NameList {
    /// Entries without a `*`.
    plain: HashSet<Box<str>>,
    /// Entries with a `*`.
    patterns: Vec<NamePattern>,
    /// All entries, in the order of the list.
    entries: Vec<NamePattern>,
    /// All entries, prepared for matching with spellings of URIs.
    forms: Vec<EntryForm>,
    /// Whether an entry may be a URI template.
    has_templates: bool,
    /// Whether an entry that cannot be parsed matches everything.
    matches_all: bool,
}

/// An entry, prepared for matching with spellings of URIs.
#[derive(Clone, Debug)]
struct EntryForm {
    normal: Box<str>,
    template: Option<TemplateForm>,
    /// The pattern in lowercase, like the spellings.
    pattern: Option<NamePattern>,
}

impl EntryForm {
    fn of(entry: &NamePattern) -> Self {
        let text = entry.as_str();
        Self {
            normal: normalised(text).into(),
            template: text.contains('{').then(|| TemplateForm::of(text)),
            pattern: entry.plain_name().is_none().then(|| entry.in_small_letters()),
        }
    }
}

/// The meaning of an entry that cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnreadableEntry {
    /// It allows nothing.
    MatchesNothing,
    /// It denies everything.
    MatchesAll,
}

impl NameList {
    pub(super) fn of(texts: &[Box<str>], unreadable: UnreadableEntry) -> Self {
        let mut list = Self::default();
        for text in texts {
            let Ok(entry) = NamePattern::of_list(text) else {
                list.matches_all |= unreadable == UnreadableEntry::MatchesAll;
                continue;
            };
            match entry.plain_name() {
                Some(name) => {
                    list.plain.insert(name.into());
                }
                None => list.patterns.push(entry.clone()),
            }
            let form = EntryForm::of(&entry);
            list.has_templates |= form.template.is_some();
            list.forms.push(form);
            list.entries.push(entry);
        }
        list
    }

    /// Whether the list has no entries.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.matches_all
    }

    /// Its entries, in the order of the list.
    pub(super) fn entries(&self) -> impl Iterator<Item = &NamePattern> {
        self.entries.iter()
    }

    /// Whether an entry is exactly this name.
    pub(super) fn names(&self, name: &str) -> bool {
        self.plain.contains(name)
    }

    /// Whether an entry matches an upstream name.
    pub(super) fn matches(&self, own: &str) -> bool {
        self.matches_all
            || self.plain.contains(own)
            || self.patterns.iter().any(|pattern| pattern.matches(own))
    }

    /// Whether an entry matches a URI: in any spelling, as a template or as a pattern.
    pub(super) fn covers(&self, spellings: &UriSpellings) -> bool {
        let written = OnceCell::new();
        let matches = |pattern: &NamePattern| {
            let may_match = spellings.forms().any(|form| pattern.may_match(start_of(form)));
            let written = || written.get_or_init(|| spellings.written());
            may_match && written().iter().any(|spelling| pattern.matches(spelling))
        };
        let covers = |entry: &EntryForm| {
            spellings.include(&entry.normal)
                || entry.template.as_ref().is_some_and(|it| spellings.fit(it))
                || entry.pattern.as_ref().is_some_and(matches)
        };
        self.matches_all || self.forms.iter().any(covers)
    }

    /// Whether an entry is a template that matches the URI of an item, or covers the narrower
    /// template of an item.
    pub(super) fn has_template_of(&self, item: &Item) -> bool {
        let fits = |entry: &EntryForm| {
            let is_plain = entry.pattern.is_none();
            is_plain && entry.template.as_ref().is_some_and(|it| item.spellings().fit(it))
        };
        self.has_templates && self.forms.iter().any(fits)
    }

    /// Whether an entry may be a template that matches a URI.
    pub(super) fn may_name_template(&self, spellings: &UriSpellings) -> bool {
        self.forms.iter().any(|entry| {
            let template = entry.template.as_ref();
            template.is_some_and(|it| entry.pattern.is_some() || spellings.fit(it))
        })
    }

    /// Whether the list allows an unlisted URI: by exactly this URI, or by a pattern that also
    /// matches its normalised form (`x://public/../private` is not below `x://public/`).
    pub(super) fn allows_unlisted(&self, own: &str, whole: &[String]) -> bool {
        let mut patterns = self.entries.iter().zip(&self.forms);
        let by_pattern = |(entry, form): (&NamePattern, &EntryForm)| {
            let matches = |small: &NamePattern| whole.iter().any(|it| small.matches(it));
            form.pattern.as_ref().is_some_and(matches) && entry.matches(own)
        };
        self.names(own) || patterns.any(by_pattern)
    }
}

/// The start of all spellings, with any number of slashes.
fn start_of(form: &str) -> &str {
    match form.split_once(":/") {
        Some((scheme, _)) => form.get(..scheme.len() + 2).unwrap_or_default(),
        None => "",
    }
}
