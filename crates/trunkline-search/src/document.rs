//! A tool as the index sees it: its texts, by field.

use crate::limits::{MAX_FIELD_BYTES, MAX_PARAMETERS, beginning};
use crate::stem::stem;
use crate::words::{for_each_term, for_each_word_of_stop_words};

/// A tool to index.
///
/// ```
/// use trunkline_search::Document;
///
/// let document = Document {
///     key: "github_create_issue".to_owned(),
///     server: "github".to_owned(),
///     name: "create_issue".to_owned(),
///     description: "Create a new issue in a repository.".to_owned(),
///     parameters: vec![("title".to_owned(), "Issue title".to_owned())],
///     ..Document::default()
/// };
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Identifies the tool among all documents, such as its exposed name.
    pub key: String,
    /// Name of the server.
    pub server: String,
    /// Name of the tool, without a prefix for the server.
    pub name: String,
    /// Title of the tool.
    pub title: String,
    /// Description of the tool.
    pub description: String,
    /// Name and description of each parameter: [`parameter_texts`](crate::parameter_texts).
    pub parameters: Vec<(String, String)>,
    /// Description or instructions of the server.
    pub server_description: String,
}

/// A part of a document with its own weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// [`Document::name`].
    Name,
    /// [`Document::title`].
    Title,
    /// [`Document::server`].
    Server,
    /// [`Document::description`].
    Description,
    /// Names in [`Document::parameters`].
    ParameterNames,
    /// Descriptions in [`Document::parameters`].
    ParameterDescriptions,
    /// [`Document::server_description`].
    ServerDescription,
}

impl Field {
    /// All fields, in the order of [`Field`] as a number.
    pub const ALL: [Self; 7] = [
        Self::Name,
        Self::Title,
        Self::Server,
        Self::Description,
        Self::ParameterNames,
        Self::ParameterDescriptions,
        Self::ServerDescription,
    ];

    /// Number of fields.
    pub const COUNT: usize = Self::ALL.len();
}

impl Document {
    /// Calls a function with every text of the document that is indexed, and its field.
    pub(crate) fn for_each_text<'a>(&'a self, mut visit: impl FnMut(Field, &'a str)) {
        let mut visit = |field, text: &'a str| visit(field, beginning(text, MAX_FIELD_BYTES));
        visit(Field::Name, &self.name);
        visit(Field::Title, &self.title);
        visit(Field::Server, &self.server);
        visit(Field::Description, &self.description);
        for (name, description) in self.parameters.iter().take(MAX_PARAMETERS) {
            visit(Field::ParameterNames, name);
            visit(Field::ParameterDescriptions, description);
        }
        visit(Field::ServerDescription, &self.server_description);
    }

    /// Calls a function with every term of the document and its field.
    pub(crate) fn for_each_term(&self, mut visit: impl FnMut(Field, &str)) {
        self.for_each_text(|field, text| for_each_term(text, |term| visit(field, term)));
        self.for_each_stop_word_of_name(|word| visit(Field::Name, &stem(word)));
    }

    /// Calls a function with every word of a name that has only stop words, which are its terms all
    /// the same.
    pub(crate) fn for_each_stop_word_of_name(&self, visit: impl FnMut(&str)) {
        for_each_word_of_stop_words(beginning(&self.name, MAX_FIELD_BYTES), visit);
    }
}
