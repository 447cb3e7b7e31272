//! Builds again when a migration is added: they are compiled into the program.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
