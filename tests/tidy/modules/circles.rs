//! Circles between the modules of a crate.
//!
//! The submodules of one module must not reference each other in a circle. A reference counts for the two
//! siblings whose subtrees contain its ends, so a module may use its ancestors and its descendants.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::slice;

use super::resolve::resolve;
use super::tree::{ModulePath, ModuleTree};

/// Places of an edge that a message names.
const MAX_PLACES: usize = 3;

/// Siblings below one module: from, to, references.
type Siblings = BTreeMap<String, BTreeMap<String, Places>>;

/// The first line at which a file uses a name.
type Places = BTreeMap<(String, String), usize>;

/// Returns a line for each circle in a crate.
pub(crate) fn module_circles(tree: &ModuleTree) -> Vec<String> {
    let mut found = Vec::new();
    for (parent, siblings) in edges(tree) {
        let parent = [slice::from_ref(&tree.crate_name), parent.as_slice()]
            .concat()
            .join("::");
        let circles: BTreeSet<Vec<&str>> = siblings
            .keys()
            .filter_map(|start| shortest_circle(&siblings, start))
            .collect();
        let described = circles.iter().map(|circle| describe(&siblings, circle));
        found.extend(described.map(|circle| format!("{parent}: {circle}")));
    }
    found
}

/// Returns the edges between siblings, by their parent.
fn edges(tree: &ModuleTree) -> BTreeMap<ModulePath, Siblings> {
    let mut edges: BTreeMap<ModulePath, Siblings> = BTreeMap::new();
    for (from, module) in &tree.modules {
        for reference in &module.references {
            let Some(target) = resolve(tree, from, &reference.path) else {
                continue;
            };
            for to in target.reexporters.iter().chain([&target.module]) {
                let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
                if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
                    let siblings = edges.entry(from[..common].to_vec()).or_default();
                    let places = siblings
                        .entry(a.clone())
                        .or_default()
                        .entry(b.clone())
                        .or_default();
                    let place = (module.file.clone(), target.name.clone());
                    let line = places.entry(place).or_insert(reference.line);
                    *line = reference.line.min(*line);
                }
            }
        }
    }
    edges
}

/// Returns the shortest circle through a module, beginning at its alphabetically first member.
fn shortest_circle<'a>(siblings: &'a Siblings, start: &'a str) -> Option<Vec<&'a str>> {
    let mut previous: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(module) = queue.pop_front() {
        for next in siblings.get(module).into_iter().flat_map(BTreeMap::keys) {
            if next == start {
                let mut circle = vec![module];
                while let Some(module) = circle.last().and_then(|last| previous.get(last)) {
                    circle.push(module);
                }
                circle.reverse();
                let first = (0..circle.len()).min_by_key(|at| circle[*at])?;
                circle.rotate_left(first);
                return Some(circle);
            }
            if !previous.contains_key(next.as_str()) {
                previous.insert(next, module);
                queue.push_back(next);
            }
        }
    }
    None
}

fn describe(siblings: &Siblings, circle: &[&str]) -> String {
    let next = circle.iter().cycle().skip(1);
    let edges = circle.iter().zip(next).map(|(from, to)| {
        let places = &siblings[*from][*to];
        let mut described: Vec<String> = places
            .iter()
            .take(MAX_PLACES)
            .map(|((file, name), line)| format!("{file}:{line} uses {name}"))
            .collect();
        if places.len() > MAX_PLACES {
            described.push(format!("{} more", places.len() - MAX_PLACES));
        }
        format!("{from} -> {to} ({})", described.join("; "))
    });
    edges.collect::<Vec<_>>().join(", ")
}
