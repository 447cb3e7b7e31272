//! Build script: names the kind of profile in the program, for `build_info` and reports of load runs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // "debug" for dev and profiles that inherit from it, "release" for release and dist.
    let profile = std::env::var("PROFILE").unwrap_or_default();
    println!("cargo::rustc-env=VOUCHSAFE_PROFILE={profile}");
}
