//! References of a module to other modules: imports, paths in code, paths in macros and attributes.

use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemMod, ItemUse, Lit, Macro, Meta, UseTree, VisRestricted};

use super::attributes::{attributes_of_impl_item, attributes_of_item, is_test_only};

/// A path as it is written, at its line.
pub(crate) struct Reference {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}

/// A name that `use` brings into a module.
pub(crate) struct Import {
    /// `None` for each name of the module at the path.
    pub(crate) name: Option<String>,
    pub(crate) path: Vec<String>,
}

/// What the items of one module contain, without unit tests.
#[derive(Default)]
pub(crate) struct Collected<'ast> {
    pub(crate) submodules: Vec<&'ast ItemMod>,
    pub(crate) imports: Vec<Import>,
    pub(crate) references: Vec<Reference>,
}

/// Collects from the items of one module. Items of inline modules are not included.
pub(crate) fn collect(items: &[Item]) -> Collected<'_> {
    let mut collected = Collected::default();
    for item in items {
        collected.visit_item(item);
    }
    collected
}

impl<'ast> Visit<'ast> for Collected<'ast> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test_only(attributes_of_item(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !is_test_only(attributes_of_impl_item(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.submodules.push(item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.add_imports(&item.tree, &[]);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let (None, Some(first)) = (&path.leading_colon, path.segments.first()) {
            self.references.push(Reference {
                path: path
                    .segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect(),
                line: first.ident.span().start().line,
            });
        }
        visit::visit_path(self, path);
    }

    /// The path of `pub(in path)` is an ancestor.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}

    fn visit_macro(&mut self, invocation: &'ast Macro) {
        self.visit_path(&invocation.path);
        self.add_paths_of_tokens(invocation.tokens.clone(), false);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            Meta::List(list) => self.add_paths_of_tokens(list.tokens.clone(), true),
            Meta::Path(_) | Meta::NameValue(_) => {}
        }
    }
}

impl Collected<'_> {
    fn add_imports(&mut self, tree: &UseTree, prefix: &[String]) {
        let (ident, name) = match tree {
            UseTree::Path(path) => {
                let prefix = [prefix, &[path.ident.to_string()]].concat();
                return self.add_imports(&path.tree, &prefix);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.add_imports(tree, prefix));
            }
            UseTree::Glob(glob) => {
                let line = glob.star_token.span.start().line;
                return self.add_import(None, prefix.to_vec(), line);
            }
            UseTree::Rename(rename) => (&rename.ident, Some(rename.rename.to_string())),
            UseTree::Name(name) => (&name.ident, None),
        };
        let mut path = prefix.to_vec();
        if ident != "self" || prefix.is_empty() {
            path.push(ident.to_string());
        }
        let name = name.or_else(|| path.last().cloned());
        self.add_import(name, path, ident.span().start().line);
    }

    fn add_import(&mut self, name: Option<String>, path: Vec<String>, line: usize) {
        self.imports.push(Import {
            name,
            path: path.clone(),
        });
        self.references.push(Reference { path, line });
    }

    /// Adds each path of two or more segments in tokens that are not parsed: `a::b`, and in attributes
    /// `"a::b"`.
    fn add_paths_of_tokens(&mut self, tokens: TokenStream, in_attribute: bool) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut follows_separator = false;
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match &token {
                TokenTree::Ident(ident) if ident == "use" && path.is_empty() => {
                    let import = tokens.clone().take_while(|token| !is_punctuation(token, ';'));
                    let import = [token].into_iter().chain(import).collect();
                    self.add_import_of_tokens(import);
                    continue;
                }
                TokenTree::Ident(ident) => {
                    if !follows_separator {
                        self.add_path(&mut path, line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    follows_separator = false;
                    continue;
                }
                TokenTree::Punct(colon) if colon.as_char() == ':' && colon.spacing() == Spacing::Joint => {
                    if tokens.next_if(|next| is_punctuation(next, ':')).is_some() {
                        follows_separator = !path.is_empty();
                        continue;
                    }
                }
                TokenTree::Group(group) => self.add_paths_of_tokens(group.stream(), in_attribute),
                TokenTree::Literal(literal) if in_attribute => {
                    if let Lit::Str(text) = Lit::new(literal.clone()) {
                        self.add_quoted_path(&text.value(), literal.span().start().line);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            self.add_path(&mut path, line);
            follows_separator = false;
        }
        self.add_path(&mut path, line);
    }

    fn add_path(&mut self, path: &mut Vec<String>, line: usize) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.references.push(Reference { path, line });
        }
    }

    fn add_quoted_path(&mut self, text: &str, line: usize) {
        let mut path: Vec<String> = text.split("::").map(str::to_owned).collect();
        let is_name = |name: &String| syn::parse_str::<syn::PathSegment>(name).is_ok();
        if path.iter().all(is_name) {
            self.add_path(&mut path, line);
        }
    }

    fn add_import_of_tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens;
        tokens.extend([TokenTree::from(proc_macro2::Punct::new(';', Spacing::Alone))]);
        if let Ok(import) = syn::parse2::<ItemUse>(tokens) {
            self.add_imports(&import.tree, &[]);
        }
    }
}

fn is_punctuation(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punctuation) if punctuation.as_char() == mark)
}
