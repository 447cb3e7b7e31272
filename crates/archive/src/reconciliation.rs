//! Archive of reconciliation: vendors' records of a month's days, and the counts of its orders, partners and
//! batches.
//!
//! The results of days and their drifts stay: a row per vendor and day, and one per difference.

use std::path::Path;

use sqlx::{PgConnection, Postgres, Transaction};

use crate::file::{LineWriter, copy_lines};
use crate::manifest::{ArchivedFile, Manifest};
use crate::{ArchiveError, Log, Month};

/// Runs the code for each table: with the name of its file, the query of its rows, and the statement that
/// removes them.
macro_rules! for_each_table {
    ($month:expr, |$file:ident, $rows:ident, $removal:ident| $code:block) => {
        for_each_table!(@ $month, $file, $rows, $removal, $code, "vendor_records", "vendor, day, reference");
        for_each_table!(@ $month, $file, $rows, $removal, $code, "reconciled_orders", "partner_id, day, vendor, order_id");
        for_each_table!(@ $month, $file, $rows, $removal, $code, "reconciled_partners", "day, partner_id");
        for_each_table!(@ $month, $file, $rows, $removal, $code, "reconciled_batches", "day, vendor, source, batch");
    };
    (@ $month:expr, $file:ident, $rows:ident, $removal:ident, $code:block, $table:literal, $order:literal) => {{
        let $file = concat!($table, ".ndjson.gz");
        let $rows = sqlx::query_scalar!(
            r#"SELECT row_to_json(r)::text AS "row!" FROM "# + $table + " AS r WHERE r.day >= $1 AND r.day < $2 ORDER BY " + $order,
            $month.first_day(),
            $month.next().first_day(),
        );
        let $removal = sqlx::query!(
            "DELETE FROM " + $table + " AS r WHERE r.day >= $1 AND r.day < $2",
            $month.first_day(),
            $month.next().first_day(),
        );
        $code
    }};
}

pub(crate) async fn list_months(connection: &mut PgConnection) -> Result<Vec<Month>, sqlx::Error> {
    let days = sqlx::query_scalar!(
        r#"SELECT DISTINCT date_trunc('month', d.day::timestamp)::date AS "day!"
             FROM (SELECT day FROM reconciliations UNION SELECT day FROM reconciled_days) AS d"#
    );
    let days = days.fetch_all(connection).await?;
    Ok(days.into_iter().map(Month::of).collect())
}

pub(crate) async fn write(
    connection: &mut PgConnection,
    month: Month,
    directory: &Path,
) -> Result<Vec<ArchivedFile>, ArchiveError> {
    let mut files = Vec::new();
    for_each_table!(month, |file, rows, _removal| {
        let file = LineWriter::create(directory, file)?;
        files.push(copy_lines(rows.fetch(&mut *connection), file).await?);
    });
    Ok(files)
}

/// Removes the rows in one transaction, with those days locked as a comparison locks them.
pub(crate) async fn remove(
    transaction: &mut Transaction<'_, Postgres>,
    month: Month,
    manifest: &Manifest,
) -> Result<(), ArchiveError> {
    let days = sqlx::query_scalar!(
        r#"SELECT (r.requested_until > now() OR r.generated_at >= $3) IS TRUE AS "is_changing!"
             FROM reconciliations AS r
            WHERE r.day >= $1 AND r.day < $2
            ORDER BY r.vendor, r.day
              FOR UPDATE"#,
        month.first_day(),
        month.next().first_day(),
        manifest.written_at,
    );
    let mut days = days.fetch_all(&mut **transaction).await?;
    let counts = sqlx::query_scalar!(
        r#"SELECT (d.requested_until > now() OR d.generated_at >= $3) IS TRUE AS "is_changing!"
             FROM reconciled_days AS d
            WHERE d.day >= $1 AND d.day < $2
            ORDER BY d.day
              FOR UPDATE"#,
        month.first_day(),
        month.next().first_day(),
        manifest.written_at,
    );
    days.extend(counts.fetch_all(&mut **transaction).await?);
    if days.contains(&true) {
        return Err(ArchiveError::Busy {
            log: Log::Reconciliation.name(),
            month,
            reason: "a day was compared after the archive was written, or is requested: move the archive away once that is over",
        });
    }
    for_each_table!(month, |name, _rows, removal| {
        let found = removal.execute(&mut **transaction).await?.rows_affected();
        let archived = manifest.files.iter().find(|file| file.name == name);
        let archived = archived.map_or(0, |file| file.rows);
        if found != archived {
            return Err(ArchiveError::RowsDiffer {
                log: Log::Reconciliation.name(),
                month,
                file: name.to_owned(),
                found: found.cast_signed(),
                archived: archived.cast_signed(),
            });
        }
    });
    Ok(())
}
