//! Measures the length of files and functions, and the number of parameters.

use std::fmt;

use proc_macro2::Span;
use syn::TraitItemFn;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, FnArg, ImplItemFn, ItemFn, ItemImpl, ItemMod, ItemTrait, Signature};

use super::source::{Role, Source, is_test_only, type_name};

/// The measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quantity {
    File,
    TestFile,
    Function,
    Parameters,
    Pronouns,
}

impl Quantity {
    /// The size above which something should be split.
    pub(crate) fn limit(self) -> usize {
        match self {
            Self::File => 500,
            Self::TestFile => 800,
            Self::Function => 60,
            Self::Parameters => 5,
            Self::Pronouns => 0,
        }
    }

    /// The keyword of an entry in the ratchet file.
    pub(crate) fn keyword(self) -> &'static str {
        match self {
            Self::File | Self::TestFile => "file",
            Self::Function => "function",
            Self::Parameters => "parameters",
            Self::Pronouns => "pronouns",
        }
    }

    /// What to do about something that is larger than the limit.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::Pronouns => "name the client, server, caller or user that is meant",
            _ => "split it by what its parts are for",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::File | Self::TestFile => "lines in the file",
            Self::Function => "lines in the function",
            Self::Parameters => "parameters",
            Self::Pronouns => "words such as `whoever` or `nobody`",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.unit())
    }
}

/// The size of one file or function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) quantity: Quantity,
    /// The path of the file, followed by `::` and the name of the function.
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) amount: usize,
}

/// Measures a file and, if it is production code, its functions.
pub(crate) fn measure(source: &Source) -> Vec<Measure> {
    let mut ruler = Ruler::new(&source.path);
    ruler.visit_file(&source.syntax);
    let lines = source.text.lines().count();
    let file = |quantity, amount| Measure { quantity, name: source.path.clone(), line: 1, amount };
    match source.role {
        Role::Test => vec![file(Quantity::TestFile, lines)],
        Role::Production => {
            ruler.found.push(file(Quantity::File, lines - ruler.test_lines));
            ruler.found
        }
    }
}

/// Visits the production code of a file.
struct Ruler {
    /// The path of the file, then the enclosing type or trait.
    names: Vec<String>,
    test_lines: usize,
    found: Vec<Measure>,
}

impl Ruler {
    fn new(path: &str) -> Self {
        Self { names: vec![path.to_owned()], test_lines: 0, found: Vec::new() }
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.names.push(name);
        visit(self);
        self.names.pop();
    }

    fn add_signature(&mut self, signature: &Signature) {
        let is_typed = |input: &&FnArg| matches!(input, FnArg::Typed(_));
        let amount = signature.inputs.iter().filter(is_typed).count();
        self.add(Quantity::Parameters, signature, amount);
    }

    fn add_body(&mut self, signature: &Signature, body: &Block) {
        let amount = line_count(signature.fn_token.span, body.brace_token.span.close());
        self.add(Quantity::Function, signature, amount);
    }

    fn add(&mut self, quantity: Quantity, signature: &Signature, amount: usize) {
        self.found.push(Measure {
            quantity,
            name: format!("{}::{}", self.names.join("::"), signature.ident),
            line: signature.fn_token.span.start().line,
            amount,
        });
    }

    fn skip_test_module(&mut self, module: &ItemMod) {
        if let Some((brace, _)) = &module.content {
            let start = start_of(&module.attrs).unwrap_or(module.mod_token.span);
            self.test_lines += line_count(start, brace.span.close());
        }
    }
}

fn start_of(attributes: &[Attribute]) -> Option<Span> {
    attributes.first().map(|attribute| attribute.pound_token.span)
}

fn line_count(start: Span, end: Span) -> usize {
    end.end().line + 1 - start.start().line
}

impl<'ast> Visit<'ast> for Ruler {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if is_test_only(&module.attrs) {
            self.skip_test_module(module);
        } else {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !is_test_only(&item.attrs) {
            self.within(type_name(&item.self_ty), |this| {
                visit::visit_item_impl(this, item);
            });
        }
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.within(item.ident.to_string(), |this| {
            visit::visit_item_trait(this, item);
        });
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_test_only(&function.attrs) {
            self.add_signature(&function.sig);
            self.add_body(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test_only(&function.attrs) {
            self.add_signature(&function.sig);
            self.add_body(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        self.add_signature(&function.sig);
        if let Some(body) = &function.default {
            self.add_body(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(path: &str, text: &str) -> Vec<(Quantity, String, usize)> {
        let source = Source::parse(path, text).unwrap();
        let entry = |measure: Measure| (measure.quantity, measure.name, measure.amount);
        measure(&source).into_iter().map(entry).collect()
    }

    #[test]
    fn a_function_counts_from_its_signature_to_its_brace() {
        let text = "/// Words.\n#[inline]\npub fn f(\n    a: u8,\n    b: u8,\n) {\n}\n";
        assert_eq!(
            measured("crates/x/src/a.rs", text),
            [
                (Quantity::Parameters, "crates/x/src/a.rs::f".into(), 2),
                (Quantity::Function, "crates/x/src/a.rs::f".into(), 5),
                (Quantity::File, "crates/x/src/a.rs".into(), 7),
            ]
        );
    }

    #[test]
    fn a_method_is_named_with_its_type_and_self_is_no_parameter() {
        let found = measured("a.rs", "impl A for B<C> { fn f(&self, x: u8) {} }");
        assert_eq!(found[0], (Quantity::Parameters, "a.rs::B::f".into(), 1));
    }

    #[test]
    fn test_modules_do_not_count() {
        let text = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        let found = measured("crates/x/src/a.rs", text);
        assert_eq!(found.last().unwrap().2, 2);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn test_files_count_whole_and_their_functions_not_at_all() {
        assert_eq!(
            measured("crates/x/tests/a.rs", "fn f() {}\nfn g() {}\n"),
            [(Quantity::TestFile, "crates/x/tests/a.rs".into(), 2)]
        );
    }
}
