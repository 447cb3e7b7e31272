//! Protection of the process memory, which has keys and codes: no core dumps, no ptrace by other processes of
//! the same user.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Forbids core dumps and ptrace. Root can still read the memory.
///
/// The limit alone is not enough: the kernel ignores it where `core_pattern` pipes dumps to a program.
///
/// # Errors
/// If the operating system refuses.
pub fn forbid_dumps() -> io::Result<()> {
    let maximum = Some(0);
    if getrlimit(Resource::Core).maximum != maximum {
        let none = Rlimit {
            current: maximum,
            maximum,
        };
        setrlimit(Resource::Core, none)?;
    }
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_not_dumpable() {
        // Twice: the second call finds the lower limit.
        for _ in 0..2 {
            forbid_dumps().unwrap();
            let limit = getrlimit(Resource::Core);
            assert_eq!((limit.current, limit.maximum), (Some(0), Some(0)));
            #[cfg(target_os = "linux")]
            assert_eq!(
                rustix::process::dumpable_behavior().unwrap(),
                rustix::process::DumpableBehavior::NotDumpable
            );
        }
    }
}
