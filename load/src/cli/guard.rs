//! `load guard`: counts of an order under callgrind, against a committed record or another program.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::Args;
use vouchsafe_load::guard::record::{Comparison, Record, Release};
use vouchsafe_load::guard::{Counts, Toolchain, count_orders};
use vouchsafe_load::report::{Verdict, check_output_file};

use super::print_progress;
use super::scenario::service_program;

/// Stands for a release that has no record of this toolchain.
const FIRST_RECORD: &str = "none yet";

#[derive(Args)]
pub(crate) struct GuardArgs {
    /// Service program [default: `vouchsafe` in the directory of this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Earlier service program, for example of the last release: both are counted and compared
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    against: Option<PathBuf>,
    /// Record of counts: growth fails, and counts that fell or are new are written to it
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write all counts to the record, for a deliberate growth or another toolchain
    #[arg(long, requires = "record")]
    write: bool,
    /// Write all counts to the record as those of this release
    #[arg(long, value_name = "VERSION", requires = "record")]
    release: Option<String>,
}

/// Counts and compares.
pub(crate) fn command(args: &GuardArgs) -> anyhow::Result<Verdict> {
    let program = service_program(args.program.as_ref())?;
    for program in [Some(&program), args.against.as_ref()].into_iter().flatten() {
        ensure!(
            program.is_file(),
            "`{}` does not exist: build it first",
            program.display()
        );
    }
    if let Some(path) = &args.record {
        check_output_file(path, &[])?;
    }
    // Read before the count, which takes a minute.
    let record = match &args.record {
        Some(path) if !args.write && args.release.is_none() || path.exists() => Some(Record::read(path)?),
        _ => None,
    };
    let (toolchain, counts) = count(&program)?;
    let mut out = std::io::stdout().lock();
    if let Some(against) = &args.against {
        let (_, before) = count(against)?;
        let comparison = Comparison::between("against", &before, &counts);
        write!(out, "{comparison}")?;
        return Ok(comparison.verdict());
    }
    let Some(path) = &args.record else {
        for (figure, count) in &counts {
            writeln!(out, "{figure:<26}{count:>14.2}")?;
        }
        return Ok(Verdict::Passed);
    };
    if args.write || args.release.is_some() {
        let counted = Release {
            version: args.release.clone().unwrap_or_else(|| FIRST_RECORD.to_owned()),
            counts: counts.clone(),
        };
        // Another toolchain has another release.
        let kept = record.filter(|record| args.release.is_none() && record.toolchain == toolchain);
        let release = kept.map_or(counted, |record| record.release);
        Record {
            toolchain,
            release,
            counts,
        }
        .write(path)?;
        writeln!(out, "counts written to {}", path.display())?;
        return Ok(Verdict::Passed);
    }
    match record {
        Some(record) if record.toolchain == toolchain && record.differs(&counts) => {
            print_progress("a count differs from the record: counting again");
            let (_, again) = count(&program)?;
            check(
                &mut out,
                record.clone(),
                path,
                &toolchain,
                &record.closer(&counts, &again),
            )
        }
        Some(record) => check(&mut out, record, path, &toolchain, &counts),
        None => Ok(Verdict::Passed),
    }
}

/// Compares with the record, and ratchets it.
fn check(
    out: &mut impl std::io::Write,
    mut record: Record,
    path: &Path,
    toolchain: &Toolchain,
    counts: &Counts,
) -> anyhow::Result<Verdict> {
    if record.toolchain != *toolchain {
        writeln!(
            out,
            "the counts were not compared: the record is of {:?}, the program of {toolchain:?}; `load \
             guard --record {} --write` makes a new one",
            record.toolchain,
            path.display()
        )?;
        return Ok(Verdict::Inconclusive);
    }
    let comparisons = record.compare(counts);
    for comparison in &comparisons {
        writeln!(out, "{comparison}")?;
    }
    let [change, release] = comparisons.map(|comparison| comparison.verdict());
    if record.ratchet(counts) {
        record.write(path)?;
        writeln!(
            out,
            "counts that fell or are new are written to {}: commit it",
            path.display()
        )?;
    }
    Ok(if change == Verdict::Passed {
        release
    } else {
        change
    })
}

fn count(program: &Path) -> anyhow::Result<(Toolchain, Counts)> {
    let runtime = vouchsafe_load::runtime::new_runtime()?;
    print_progress(&format!("{}: seeding", program.display()));
    runtime.block_on(count_orders(program, &mut print_progress))
}
