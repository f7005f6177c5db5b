//! The report of a client run, and the expected results.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Ability, Era, RealClient};

/// The resource that is read.
pub(super) const RESOURCE: &str = "test://static-text";

/// The prompt that is requested.
pub(super) const PROMPT: &str = "test_prompt_with_arguments";

/// The arguments of the prompt.
pub(super) const PROMPT_ARGUMENTS: [(&str, &str); 2] = [("arg1", "one"), ("arg2", "two")];

/// Results of a client run. `None` where the client lacks an ability or a step failed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Failures by step; `server` is connecting.
    pub failures: BTreeMap<String, String>,
    /// The negotiated protocol version.
    pub protocol: Option<String>,
    /// The name of the server.
    pub server: Option<String>,
    /// The names of all tools.
    pub tools: Option<Vec<String>>,
    /// The URIs of all resources.
    pub resources: Option<Vec<String>>,
    /// All resource templates.
    pub templates: Option<Vec<String>>,
    /// The names of all prompts.
    pub prompts: Option<Vec<String>>,
    /// The text of `test_simple_text`.
    pub text: Option<String>,
    /// The structured content of `test_structured_content`.
    pub structured: Option<Value>,
    /// The text of `test_error_handling`, as the result of a failed tool.
    pub error: Option<String>,
    /// The text of a resource.
    pub resource: Option<String>,
    /// The text of a prompt with arguments.
    pub prompt: Option<String>,
    /// Completions for an argument of that prompt.
    pub completions: Option<Vec<String>>,
    /// The progress values of `test_tool_with_progress`.
    pub progress: Option<Vec<f64>>,
    /// The texts of tools after an elicitation.
    pub elicited: Option<Vec<String>>,
    /// Whether the server received the cancellation of a `test_slow` call.
    pub cancelled: Option<bool>,
}

/// Expected properties of a server.
#[derive(Debug, Clone)]
pub struct Expectations<'a> {
    /// Its name.
    pub server: &'a str,
    /// Whether it supports the modern era, which clients with a choice prefer.
    pub is_modern: bool,
    /// Abilities it lacks, which are not checked.
    pub without: &'a [Ability],
    /// The number of its tools.
    pub tools: usize,
}

impl Expectations<'_> {
    /// Expectations for the fixture in both eras.
    #[must_use]
    pub fn of_fixture() -> Self {
        Self { server: "trunkline-fixture", is_modern: true, without: &[], tools: 39 }
    }
}

/// Asserts that a client has the expected report of a server with the fixture's items.
///
/// # Panics
///
/// When it has not, with all differences.
pub fn assert_report(client: RealClient, report: &Report, expected: &Expectations<'_>) {
    let problems = problems(client, report, expected);
    assert!(problems.is_empty(), "{client:?}:\n{}\n{report:#?}", problems.join("\n"));
}

fn problems(client: RealClient, report: &Report, expected: &Expectations<'_>) -> Vec<String> {
    let mut check = Check { client, without: expected.without, problems: Vec::new() };
    check.names(report, expected);
    check.things(report);
    check.conversations(report);
    // Other failures show as missing values.
    let unclosed = report.failures.get("closed");
    check.problems.extend(unclosed.map(|failure| format!("closed: {failure}")));
    check.problems
}

struct Check<'a> {
    client: RealClient,
    without: &'a [Ability],
    problems: Vec<String>,
}

impl Check<'_> {
    /// Checks the server's identity and lists.
    fn names(&mut self, report: &Report, expected: &Expectations<'_>) {
        let is_modern = match self.client.era() {
            Era::Legacy => false,
            Era::Auto => expected.is_modern,
            Era::Modern => true,
        };
        let protocol = if is_modern { "2026-07-28" } else { "2025-11-25" };
        self.equal(Ability::Protocol, "protocol", report.protocol.as_deref(), protocol);
        self.equal(Ability::Name, "server", report.server.as_deref(), expected.server);
        let tools = report.tools.as_ref().map(Vec::len);
        if tools != Some(expected.tools) {
            self.problem("tools", &tools, &expected.tools);
        }
        let resources = [RESOURCE, "test://static-binary", "test://watched-resource"];
        self.equal(
            Ability::Resources,
            "resources",
            sorted(report.resources.as_ref()),
            sorted_names(&resources),
        );
        let templates = report.templates.clone();
        let template = vec!["test://template/{id}/data".to_owned()];
        self.equal(Ability::Templates, "templates", templates, template);
        let prompts = [
            "test_simple_prompt",
            PROMPT,
            "test_prompt_with_embedded_resource",
            "test_prompt_with_image",
            "test_input_required_result_prompt",
        ];
        self.equal(
            Ability::Prompts,
            "prompts",
            sorted(report.prompts.as_ref()),
            sorted_names(&prompts),
        );
    }

    /// Checks the results of requests.
    fn things(&mut self, report: &Report) {
        let text = "This is a simple text response for testing.";
        if report.text.as_deref() != Some(text) {
            self.problem("text", &report.text, &text);
        }
        let weather = json!({ "city": "Paris", "degrees": 21.5 });
        self.equal(Ability::Structure, "structured", report.structured.as_ref(), &weather);
        let error = "This tool intentionally returns an error for testing";
        self.equal(Ability::Failure, "error", report.error.as_deref(), error);
        let resource = "This is the content of the static text resource.";
        self.equal(Ability::Resources, "resource", report.resource.as_deref(), resource);
        let prompt = "Prompt with arguments: arg1='one', arg2='two'";
        self.equal(Ability::Prompts, "prompt", report.prompt.as_deref(), prompt);
        let completions = sorted(report.completions.as_ref());
        let places = sorted_names(&["paris", "park", "party"]);
        self.equal(Ability::Completion, "completions", completions, places);
    }

    /// Checks messages during a call.
    fn conversations(&mut self, report: &Report) {
        let whole = [0.0, 50.0, 100.0];
        let progress = report.progress.as_deref().map(|seen| {
            let is_beginning = !seen.is_empty() && whole.starts_with(seen);
            if self.client.forgets_progress() { is_beginning } else { seen == whole }
        });
        self.equal(Ability::Progress, "progress", progress, true);
        let heard = report
            .elicited
            .as_ref()
            .map(|texts| !texts.is_empty() && texts.iter().all(|text| text.contains("Ada")));
        self.equal(Ability::Elicitation, "elicited", heard, true);
        self.equal(Ability::Cancellation, "cancelled", report.cancelled, true);
    }

    /// Records a difference; a client must not report a value for an ability it lacks.
    #[expect(clippy::needless_pass_by_value, reason = "callers make what they compare for this")]
    fn equal<T: PartialEq + Debug>(
        &mut self,
        ability: Ability,
        what: &str,
        seen: Option<T>,
        wanted: T,
    ) {
        if self.without.contains(&ability) {
            return;
        }
        let wanted = self.client.can(ability).then_some(wanted);
        if seen != wanted {
            self.problem(what, &seen, &wanted);
        }
    }

    fn problem(&mut self, what: &str, seen: &impl Debug, wanted: &impl Debug) {
        self.problems.push(format!("{what}: saw {seen:?} instead of {wanted:?}"));
    }
}

/// The order of lists is up to the server.
fn sorted(names: Option<&Vec<String>>) -> Option<Vec<String>> {
    let mut names = names?.clone();
    names.sort();
    Some(names)
}

fn sorted_names(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: RealClient = RealClient::TypeScriptClient(Era::Auto);

    /// The report on the fixture by a client with all abilities.
    fn everything() -> Report {
        let tools: Vec<String> = (0..39).map(|number| format!("tool {number}")).collect();
        let report = json!({
            "protocol": "2026-07-28",
            "server": "trunkline-fixture",
            "tools": tools,
            "resources": [RESOURCE, "test://watched-resource", "test://static-binary"],
            "templates": ["test://template/{id}/data"],
            "prompts": ["test_simple_prompt", PROMPT, "test_prompt_with_embedded_resource",
                "test_prompt_with_image", "test_input_required_result_prompt"],
            "text": "This is a simple text response for testing.",
            "structured": { "city": "Paris", "degrees": 21.5 },
            "error": "This tool intentionally returns an error for testing",
            "resource": "This is the content of the static text resource.",
            "prompt": "Prompt with arguments: arg1='one', arg2='two'",
            "completions": ["paris", "park", "party"],
            "progress": [0, 50, 100],
            "elicited": ["Hello, Ada!"],
            "cancelled": true,
        });
        serde_json::from_value(report).unwrap()
    }

    fn seen(client: RealClient, report: &Report, expected: &Expectations<'_>) -> Vec<String> {
        let problems = problems(client, report, expected).into_iter();
        problems.map(|problem| problem.split(':').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_report_of_everything_is_as_it_should_be() {
        assert_eq!(seen(CLIENT, &everything(), &Expectations::of_fixture()), [""; 0]);
    }

    #[test]
    fn an_empty_report_lacks_everything() {
        let problems = seen(CLIENT, &Report::default(), &Expectations::of_fixture());
        assert_eq!(problems.len(), 15, "{problems:?}");
    }

    #[test]
    fn differences_are_detected() {
        let mut report = everything();
        report.progress = Some(vec![0.0, 100.0]);
        report.elicited = Some(vec!["Hello, Ada!".to_owned(), "Hello, !".to_owned()]);
        report.cancelled = Some(false);
        report.failures.insert("closed".to_owned(), "it hangs".to_owned());
        let problems = seen(CLIENT, &report, &Expectations::of_fixture());
        assert_eq!(problems, ["progress", "elicited", "cancelled", "closed"]);
    }

    #[test]
    fn only_clients_that_forget_progress_may_miss_the_end_of_it() {
        let mut report = everything();
        report.progress = Some(vec![0.0, 50.0]);
        let expected = Expectations::of_fixture();
        assert_eq!(seen(CLIENT, &report, &expected), [""; 0]);
        assert_eq!(seen(RealClient::PythonSdk(Era::Auto), &report, &expected), ["progress"]);
        report.progress = Some(Vec::new());
        assert_eq!(seen(CLIENT, &report, &expected), ["progress"]);
    }

    #[test]
    fn unsupported_features_are_not_compared() {
        let without = [Ability::Completion, Ability::Cancellation];
        let expected = Expectations { without: &without, ..Expectations::of_fixture() };
        let mut report = everything();
        report.completions = None;
        assert_eq!(seen(CLIENT, &report, &expected), [""; 0]);
    }

    #[test]
    fn features_beyond_a_client_are_reported_as_problems() {
        let problems = seen(RealClient::Mcporter, &everything(), &Expectations::of_fixture());
        let beyond = [
            "protocol",
            "server",
            "templates",
            "prompts",
            "prompt",
            "completions",
            "progress",
            "elicited",
            "cancelled",
        ];
        assert_eq!(problems, beyond);
    }

    #[test]
    fn clients_with_a_choice_follow_the_server() {
        let expected = Expectations { is_modern: false, ..Expectations::of_fixture() };
        assert_eq!(seen(CLIENT, &everything(), &expected), ["protocol"]);
    }
}
