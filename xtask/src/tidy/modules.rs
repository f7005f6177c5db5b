//! The modules of one crate in order of declaration, and the file of each.

use std::collections::BTreeMap;

use syn::{Item, ItemMod};

use super::source::{Source, child_file, is_test_only};

/// The names of a module from the crate root; empty for the root.
pub(crate) type ModulePath = Vec<String>;

/// The production modules reached from one crate root.
#[derive(Default)]
pub(crate) struct ModuleTree<'a> {
    children: BTreeMap<ModulePath, Vec<String>>,
    files: Vec<(ModulePath, &'a Source)>,
}

impl<'a> ModuleTree<'a> {
    /// Follows `mod` declarations from `root` through `sources`.
    pub(crate) fn of(root: &'a Source, sources: &'a [Source]) -> Self {
        let mut tree = Self::default();
        tree.add_file(Vec::new(), root, sources);
        tree
    }

    /// Every file of the crate with its module.
    pub(crate) fn files(&self) -> impl Iterator<Item = &(ModulePath, &'a Source)> {
        self.files.iter()
    }

    /// The position of `name` among the modules that `parent` declares.
    pub(crate) fn position(&self, parent: &[String], name: &str) -> Option<usize> {
        let children = self.children.get(parent)?;
        children.iter().position(|child| child == name)
    }

    fn add_file(&mut self, path: ModulePath, source: &'a Source, sources: &'a [Source]) {
        let in_files = self.add_items(&path, &source.syntax.items, source);
        self.files.push((path, source));
        for (child, file) in in_files {
            if let Some(found) = sources.iter().find(|candidate| candidate.path == file) {
                self.add_file(child, found, sources);
            }
        }
    }

    /// Records the order of the modules among `items`; returns those in files of their own.
    fn add_items(
        &mut self,
        path: &[String],
        items: &[Item],
        source: &Source,
    ) -> Vec<(ModulePath, String)> {
        let mut in_files = Vec::new();
        for module in items.iter().filter_map(production_module) {
            let name = module.ident.to_string();
            let child = [path, std::slice::from_ref(&name)].concat();
            match &module.content {
                Some((_, items)) => in_files.extend(self.add_items(&child, items, source)),
                None => in_files.push((child, child_file(&source.path, &name))),
            }
            self.children.entry(path.to_vec()).or_default().push(name);
        }
        in_files
    }
}

fn production_module(item: &Item) -> Option<&ItemMod> {
    match item {
        Item::Mod(module) if !is_test_only(&module.attrs) => Some(module),
        _ => None,
    }
}
