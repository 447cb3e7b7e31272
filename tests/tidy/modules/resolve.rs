//! Resolution of written paths to the modules that define their names, through imports and re-exports.

use std::collections::BTreeSet;
use std::slice;

use super::tree::{ModulePath, ModuleTree};

/// What a path leads to.
pub(crate) struct Target {
    pub(crate) module: ModulePath,
    /// Path of the module or its item from the crate root, for messages.
    pub(crate) name: String,
    /// Modules that pass the name on. A path through them references them too.
    pub(crate) reexporters: Vec<ModulePath>,
}

/// Returns the target of a path that is written in a module, or `None` outside this crate.
pub(crate) fn resolve(tree: &ModuleTree, module: &ModulePath, path: &[String]) -> Option<Target> {
    let mut resolver = Resolver {
        tree,
        reexporters: Vec::new(),
        visited: BTreeSet::new(),
    };
    let resolved = resolver.path(module, path)?;
    let item = resolved.rest.get(..1).unwrap_or_default();
    let name = [resolved.module.as_slice(), item].concat().join("::");
    Some(Target {
        module: resolved.module,
        name,
        reexporters: resolver.reexporters,
    })
}

struct Resolved {
    module: ModulePath,
    /// Segments after the module, which are no modules.
    rest: Vec<String>,
    /// Whether the module contains the name in its source. Others come from macros and other crates.
    is_found: bool,
}

struct Resolver<'a> {
    tree: &'a ModuleTree,
    reexporters: Vec<ModulePath>,
    /// Names that were looked up, because glob imports may name each other's modules in a circle.
    visited: BTreeSet<(ModulePath, String)>,
}

impl Resolver<'_> {
    /// Resolves a path that is written in a module.
    fn path(&mut self, module: &ModulePath, path: &[String]) -> Option<Resolved> {
        let (first, mut rest) = path.split_first()?;
        let mut start = module.clone();
        match first.as_str() {
            "crate" => start.clear(),
            "self" => {}
            "super" => {
                start.pop()?;
            }
            _ => return self.name(module, first, rest),
        }
        while let [next, after @ ..] = rest
            && next == "super"
        {
            start.pop()?;
            rest = after;
        }
        Some(self.descend(start, rest))
    }

    /// Follows segments down from a module of this crate.
    fn descend(&mut self, start: ModulePath, path: &[String]) -> Resolved {
        let resolved = path
            .split_first()
            .and_then(|(first, rest)| self.name(&start, first, rest));
        resolved.unwrap_or_else(|| Resolved {
            module: start,
            rest: path.to_vec(),
            is_found: path.is_empty(),
        })
    }

    /// Resolves a name in a module: a submodule, an item or an import.
    fn name(&mut self, module: &ModulePath, name: &String, rest: &[String]) -> Option<Resolved> {
        let submodule = [module.as_slice(), slice::from_ref(name)].concat();
        if self.tree.modules.contains_key(&submodule) {
            return Some(self.descend(submodule, rest));
        }
        if !self.visited.insert((module.clone(), name.clone())) {
            return None;
        }
        let scope = self.tree.modules.get(module)?;
        if scope.items.contains(name) {
            return Some(Resolved {
                module: module.clone(),
                rest: [slice::from_ref(name), rest].concat(),
                is_found: true,
            });
        }
        // The path of an import that begins with its own name begins with another crate.
        let mut named = scope
            .imports
            .iter()
            .filter(|import| import.name.as_ref() == Some(name) && import.path.first() != Some(name));
        let mut globs = scope.imports.iter().filter(|import| import.name.is_none());
        let resolved = named
            .find_map(|import| self.path(module, &[import.path.as_slice(), rest].concat()))
            .or_else(|| globs.find_map(|import| self.name_in_glob(module, &import.path, name, rest)))?;
        self.reexporters.push(module.clone());
        Some(resolved)
    }

    fn name_in_glob(
        &mut self,
        module: &ModulePath,
        glob: &[String],
        name: &String,
        rest: &[String],
    ) -> Option<Resolved> {
        let source = self.path(module, glob)?;
        if !source.rest.is_empty() || source.module == *module {
            return None;
        }
        let resolved = self.name(&source.module, name, rest)?;
        resolved.is_found.then_some(resolved)
    }
}
