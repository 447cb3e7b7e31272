//! Build script: rebuilds when a migration changes, because migrations are compiled into the program.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
