//! Module tree of a crate, read from its source files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, slice};

use syn::{Item, ItemMod};

use super::attributes::{is_test_only, name_of_item, path_attribute};
use super::references::{Import, Reference, collect};

/// The names of a module's ancestors below the crate root, then its own. The crate root has none.
pub(crate) type ModulePath = Vec<String>;

pub(crate) struct Module {
    /// Path from the repository root, for messages.
    pub(crate) file: String,
    pub(crate) items: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    pub(crate) references: Vec<Reference>,
}

/// The modules of one crate, without those of its unit tests.
pub(crate) struct ModuleTree {
    pub(crate) crate_name: String,
    pub(crate) modules: BTreeMap<ModulePath, Module>,
}

impl ModuleTree {
    /// Reads the crate with this root file. Paths in messages start at `repository`.
    pub(crate) fn read(crate_name: &str, root_file: &Path, repository: &Path) -> Self {
        let mut reader = Reader {
            repository,
            modules: BTreeMap::new(),
        };
        reader.read_file(Vec::new(), root_file, parent(root_file));
        Self {
            crate_name: crate_name.to_owned(),
            modules: reader.modules,
        }
    }
}

/// Where the modules that are declared in a block of items have their files.
struct Location<'a> {
    file: &'a Path,
    /// The folder of `mod name;`.
    folder: PathBuf,
    /// The folder to which a `#[path]` is relative.
    path_folder: PathBuf,
}

struct Reader<'a> {
    repository: &'a Path,
    modules: BTreeMap<ModulePath, Module>,
}

impl Reader<'_> {
    fn read_file(&mut self, module: ModulePath, file: &Path, folder: PathBuf) {
        let text = fs::read_to_string(file)
            .unwrap_or_else(|error| panic!("cannot read {} of {module:?}: {error}", file.display()));
        let parsed =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("cannot parse {}: {error}", file.display()));
        if is_test_only(&parsed.attrs) {
            return;
        }
        let location = Location {
            file,
            folder,
            path_folder: parent(file),
        };
        self.read_items(module, &parsed.items, &location);
    }

    fn read_items(&mut self, module: ModulePath, items: &[Item], location: &Location<'_>) {
        let collected = collect(items);
        for submodule in &collected.submodules {
            self.read_submodule(&module, submodule, location);
        }
        let file = location
            .file
            .strip_prefix(self.repository)
            .unwrap_or(location.file);
        let read = Module {
            file: file.to_string_lossy().into_owned(),
            items: items.iter().filter_map(name_of_item).collect(),
            imports: collected.imports,
            references: collected.references,
        };
        self.modules.insert(module, read);
    }

    fn read_submodule(&mut self, module: &ModulePath, declared: &ItemMod, location: &Location<'_>) {
        let name = declared.ident.to_string();
        let path = path_attribute(&declared.attrs);
        let module = [module.as_slice(), slice::from_ref(&name)].concat();
        if let Some((_, items)) = &declared.content {
            let folder = location.folder.join(path.unwrap_or(name));
            let inside = Location {
                file: location.file,
                path_folder: folder.clone(),
                folder,
            };
            self.read_items(module, items, &inside);
        } else if let Some(path) = path {
            let file = location.path_folder.join(path);
            // The submodules of a file that `#[path]` names are beside it, as those of a `mod.rs`.
            self.read_file(module, &file, parent(&file));
        } else {
            let folder = location.folder.join(&name);
            let file = location.folder.join(format!("{name}.rs"));
            if file.exists() {
                self.read_file(module, &file, folder);
            } else {
                self.read_file(module, &folder.join("mod.rs"), folder);
            }
        }
    }
}

fn parent(file: &Path) -> PathBuf {
    file.parent().unwrap_or(file).to_owned()
}
