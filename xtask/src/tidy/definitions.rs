//! Collects the names that the crates define, to check documents that mention them.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Field, Ident, ImplItemConst, ImplItemFn, ItemConst, ItemEnum, ItemFn, ItemImpl, ItemMacro,
    ItemMod, ItemStatic, ItemStruct, ItemTrait, ItemType, TraitItemFn, TraitItemType, Variant,
};

use super::source::{Source, type_name};

/// Every name defined in `crates/*/src`, and the type of each member.
#[derive(Default)]
pub(crate) struct Definitions {
    names: BTreeSet<String>,
    members: BTreeSet<(String, String)>,
    owner: Option<String>,
}

impl Definitions {
    pub(crate) fn of(sources: &[Source]) -> Self {
        let mut definitions = Self::default();
        for source in sources.iter().filter(|source| source.is_crate_source()) {
            definitions.names.extend(crate_name(&source.path));
            definitions.visit_file(&source.syntax);
        }
        definitions
    }

    /// Whether a name or a `path::to::name` is defined; a member must belong to the preceding type.
    pub(crate) fn contain(&self, path: &str) -> bool {
        let segments: Vec<&str> = path.split("::").collect();
        let is_known = |name: &&str| *name == "crate" || self.names.contains(*name);
        segments.iter().all(is_known)
            && segments.windows(2).all(|pair| self.may_follow(pair[0], pair[1]))
    }

    fn may_follow(&self, owner: &str, member: &str) -> bool {
        let is_module = owner.starts_with(char::is_lowercase);
        is_module || self.members.contains(&(owner.to_owned(), member.to_owned()))
    }

    fn define(&mut self, name: &Ident) {
        let name = name.to_string();
        if let Some(owner) = &self.owner {
            self.members.insert((owner.clone(), name.clone()));
        }
        self.names.insert(name);
    }

    fn define_types(&mut self, tokens: TokenStream) {
        let mut after_keyword = false;
        for token in tokens {
            match token {
                TokenTree::Ident(word) if after_keyword => {
                    self.define(&word);
                    after_keyword = false;
                }
                TokenTree::Ident(word) => after_keyword = word == "struct" || word == "enum",
                TokenTree::Group(group) => {
                    self.define_types(group.stream());
                    after_keyword = false;
                }
                _ => after_keyword = false,
            }
        }
    }

    fn within(&mut self, owner: String, visit: impl FnOnce(&mut Self)) {
        let outer = self.owner.replace(owner);
        visit(self);
        self.owner = outer;
    }
}

fn crate_name(path: &str) -> Option<String> {
    let (name, _) = path.strip_prefix("crates/")?.split_once('/')?;
    Some(name.replace('-', "_"))
}

impl<'ast> Visit<'ast> for Definitions {
    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.define(&item.ident);
        self.within(item.ident.to_string(), |this| {
            visit::visit_item_struct(this, item);
        });
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.define(&item.ident);
        self.within(item.ident.to_string(), |this| {
            visit::visit_item_enum(this, item);
        });
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.define(&item.ident);
        self.within(item.ident.to_string(), |this| {
            visit::visit_item_trait(this, item);
        });
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        self.within(type_name(&item.self_ty), |this| {
            visit::visit_item_impl(this, item);
        });
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        self.define(&variant.ident);
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if let Some(name) = &field.ident {
            self.define(name);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.define(&item.sig.ident);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.define(&item.sig.ident);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.define(&item.sig.ident);
    }

    fn visit_trait_item_type(&mut self, item: &'ast TraitItemType) {
        self.define(&item.ident);
    }

    fn visit_item_type(&mut self, item: &'ast ItemType) {
        self.define(&item.ident);
    }

    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        self.define(&item.ident);
    }

    fn visit_impl_item_const(&mut self, item: &'ast ImplItemConst) {
        self.define(&item.ident);
    }

    fn visit_item_static(&mut self, item: &'ast ItemStatic) {
        self.define(&item.ident);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.define(&item.ident);
        visit::visit_item_mod(self, item);
    }

    /// Macros also define types, in their calls or in their bodies, with the usual syntax.
    fn visit_item_macro(&mut self, item: &'ast ItemMacro) {
        if let Some(name) = &item.ident {
            self.define(name);
        }
        self.define_types(item.mac.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(text: &str) -> Definitions {
        Definitions::of(&[Source::parse("crates/some-crate/src/a.rs", text).unwrap()])
    }

    #[test]
    fn all_kinds_of_items_are_known() {
        let known = definitions(
            "pub mod m { pub struct S { field: u8 } }
             enum E { V } trait T { fn method(&self); type A; } type Alias = u8;
             fn function() {} const C: u8 = 1; static G: u8 = 1; macro_rules! mac { () => {} }
             impl E { const K: u8 = 1; fn new() {} }",
        );
        for name in [
            "m",
            "S",
            "m::S",
            "S::field",
            "E",
            "E::V",
            "E::new",
            "E::K",
            "T::method",
            "T::A",
            "Alias",
            "function",
            "C",
            "G",
            "mac",
            "some_crate::m::S",
            "crate::m",
        ] {
            assert!(known.contain(name), "{name}");
        }
    }

    #[test]
    fn types_that_a_macro_defines_are_known() {
        let known = definitions("macro_rules! make { () => { enum W { V } } }");
        assert!(known.contain("W") && known.contain("make"));
        let known = definitions("make! { open struct S { a: b = c } pub enum E, x { V } }");
        assert!(known.contain("S") && known.contain("E") && !known.contain("V"));
    }

    #[test]
    fn unknown_names_and_members_of_another_type_are_not() {
        let known = definitions("enum E { V } struct S; impl S { fn new() {} }");
        for name in ["X", "E::new", "S::V", "m::S", "std::S"] {
            assert!(!known.contain(name), "{name}");
        }
    }
}
