//! Collects every path in the production code of a file: in imports, expressions and macros.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{ImplItemFn, ItemFn, ItemImpl, ItemMod, ItemUse, Macro, Path, UseTree};

use super::source::is_test_only;

/// Last segment of an import that hides the names in use: `use a::*` and `use a as b`.
pub(crate) const HIDDEN: &str = "*";

/// A path as written, with imports expanded; a macro call ends in `!`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    /// The inline modules around the path, outermost first.
    pub(crate) inside: Vec<String>,
}

/// The paths in a file, excluding test code.
pub(crate) fn collect(file: &syn::File) -> Vec<Reference> {
    let mut collector = Collector::default();
    collector.visit_file(file);
    collector.found
}

#[derive(Default)]
struct Collector {
    inside: Vec<String>,
    found: Vec<Reference>,
}

impl Collector {
    fn record(&mut self, segments: Vec<String>, line: usize) {
        self.found.push(Reference { segments, line, inside: self.inside.clone() });
    }

    fn record_import(&mut self, prefix: &[String], tree: &UseTree) {
        let extended = |name: String| [prefix, &[name]].concat();
        match tree {
            UseTree::Path(path) => {
                self.record_import(&extended(path.ident.to_string()), &path.tree);
            }
            UseTree::Name(name) => {
                let line = name.ident.span().start().line;
                self.record(extended(name.ident.to_string()), line);
            }
            UseTree::Rename(rename) => {
                let mut segments = extended(rename.ident.to_string());
                segments.push(HIDDEN.to_owned());
                self.record(segments, rename.ident.span().start().line);
            }
            UseTree::Glob(glob) => {
                let line = glob.star_token.spans[0].start().line;
                self.record(extended(HIDDEN.to_owned()), line);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.record_import(prefix, tree);
                }
            }
        }
    }

    /// The parser leaves macro bodies as tokens, so paths are recognized by their shape.
    fn record_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while let [first, after @ ..] = rest {
            rest = after;
            match first {
                TokenTree::Ident(name) => {
                    let segments;
                    (segments, rest) = split_path(name.to_string(), after);
                    self.record(segments, name.span().start().line);
                }
                TokenTree::Group(group) => self.record_tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

/// The path that starts with `first`, and the remaining tokens.
fn split_path(first: String, mut rest: &[TokenTree]) -> (Vec<String>, &[TokenTree]) {
    let mut segments = vec![first];
    while let [one, two, TokenTree::Ident(name), after @ ..] = rest
        && is_mark(one, ':')
        && is_mark(two, ':')
    {
        segments.push(name.to_string());
        rest = after;
    }
    if rest.first().is_some_and(|token| is_mark(token, '!')) {
        mark_as_macro(&mut segments);
    }
    (segments, rest)
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn mark_as_macro(segments: &mut [String]) {
    if let Some(last) = segments.last_mut() {
        last.push('!');
    }
}

fn segments_of(path: &Path) -> Vec<String> {
    let names = path.segments.iter();
    names.map(|segment| segment.ident.to_string()).collect()
}

fn line_of(path: &Path) -> usize {
    let first = path.segments.first();
    first.map_or(0, |segment| segment.ident.span().start().line)
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_path(&mut self, path: &'ast Path) {
        self.record(segments_of(path), line_of(path));
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_test_only(&item.attrs) {
            self.record_import(&[], &item.tree);
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let mut segments = segments_of(&call.path);
        mark_as_macro(&mut segments);
        self.record(segments, line_of(&call.path));
        self.record_tokens(call.tokens.clone());
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test_only(&module.attrs) {
            self.inside.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.inside.pop();
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_test_only(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test_only(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let references = collect(&syn::parse_file(text).unwrap());
        references.iter().map(|reference| reference.segments.join("::")).collect()
    }

    #[test]
    fn imports_are_spelled_out() {
        assert_eq!(
            paths("use crate::{a::B, c::{self, D as E}, f::*};"),
            ["crate::a::B", "crate::c::self", "crate::c::D::*", "crate::f::*"]
        );
    }

    #[test]
    fn expressions_types_and_bounds_are_read() {
        assert_eq!(
            paths("fn f(x: crate::A) -> Vec<super::B> { g::h(x) }"),
            ["crate::A", "Vec", "super::B", "g::h", "x"]
        );
    }

    #[test]
    fn macro_calls_and_their_bodies_are_read() {
        assert_eq!(
            paths("fn f() { log!(1, std::env::var(x), format!()); }"),
            ["log!", "std::env::var", "x", "format!"]
        );
    }

    #[test]
    fn test_code_is_left_out() {
        assert!(paths("#[cfg(test)] mod tests { use crate::a; }").is_empty());
        assert!(paths("#[test] fn works() { a::b(); }").is_empty());
        assert!(paths("#[cfg(test)] impl X { fn y() { a::b() } }").is_empty());
    }

    #[test]
    fn a_reference_knows_its_line_and_the_modules_around_it() {
        let file = syn::parse_file("mod a {\n    mod b { use c::D; }\n}").unwrap();
        let expected = Reference {
            segments: vec!["c".into(), "D".into()],
            line: 2,
            inside: vec!["a".into(), "b".into()],
        };
        assert_eq!(collect(&file), [expected]);
    }
}
