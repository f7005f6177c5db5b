//! Requires `#[expect]` with a reason instead of `#[allow]`, and forbids `mod.rs` files.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Meta};

use super::source::Source;
use super::violation::Violation;

/// Reports `mod.rs` files.
pub(crate) fn forbidden_file_names(files: &[String]) -> Vec<Violation> {
    let is_forbidden = |path: &&String| path.rsplit('/').next() == Some("mod.rs");
    let violation = |path: &String| Violation {
        path: path.clone(),
        line: 1,
        problem: "a file called mod.rs".to_owned(),
        remedy: "name the file after its module: `foo.rs` beside `foo/`".to_owned(),
    };
    files.iter().filter(is_forbidden).map(violation).collect()
}

/// Reports `#[allow]`, and `#[expect]` without a reason.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let mut finder = Finder { source, found: Vec::new() };
    finder.visit_file(&source.syntax);
    finder.found
}

struct Finder<'a> {
    source: &'a Source,
    found: Vec<Violation>,
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Some(problem) = problem_with(attribute) {
            self.found.push(Violation {
                path: self.source.path.clone(),
                line: attribute.pound_token.span.start().line,
                problem: problem.to_owned(),
                remedy: "write `#[expect(…, reason = \"…\")]`".to_owned(),
            });
        }
        visit::visit_attribute(self, attribute);
    }
}

fn problem_with(attribute: &Attribute) -> Option<&'static str> {
    let Meta::List(list) = &attribute.meta else {
        return None;
    };
    let is_conditional = list.path.is_ident("cfg_attr");
    let names = |name| list.path.is_ident(name) || (is_conditional && mentions(&list.tokens, name));
    if names("allow") {
        Some("a lint is allowed")
    } else if names("expect") && !mentions(&list.tokens, "reason") {
        Some("a lint is expected without a reason")
    } else {
        None
    }
}

fn mentions(tokens: &TokenStream, name: &str) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(&group.stream(), name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let source = Source::parse("crates/x/src/a.rs", text).unwrap();
        check(&source).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn allowing_a_lint_fails() {
        let expected =
            "crates/x/src/a.rs:2: a lint is allowed; write `#[expect(…, reason = \"…\")]`";
        assert_eq!(problems("\n#[allow(dead_code)] fn f() {}"), [expected]);
        assert_eq!(problems("\n#![allow(dead_code)]"), [expected]);
        assert_eq!(problems("\n#[cfg_attr(test, allow(dead_code))] fn f() {}"), [expected]);
        assert_eq!(problems("fn f() {\n#[allow(unused)] let x = 1; }"), [expected]);
    }

    #[test]
    fn an_expectation_needs_a_reason() {
        assert_eq!(problems("#[expect(dead_code)] fn f() {}").len(), 1);
        assert!(problems("#[expect(dead_code, reason = \"soon\")] fn f() {}").is_empty());
    }

    #[test]
    fn mod_files_fail() {
        let files = ["a/mod.rs".to_owned(), "a/commod.rs".to_owned()];
        let found = forbidden_file_names(&files);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "a/mod.rs");
    }
}
