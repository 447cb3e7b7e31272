//! Counts of requests under the rate limits, for all nodes of the deployment.

use std::collections::BTreeMap;

use sqlx::PgPool;
use uuid::Uuid;
use vouchsafe_domain::limits::{Limit, RequestClass};
use vouchsafe_security::rate_limiter::WindowKey;
use vouchsafe_security::shared_window::UsageView;

use super::node_identity::NodeIdentity;
use vouchsafe_database::batcher::{BatchOp, BatchResponse, request_index};

/// Requests of this node to count, and whether to admit one more.
#[derive(Debug, Clone)]
pub(super) struct UsageRequest {
    pub(super) window: WindowKey,
    pub(super) limit: Limit,
    /// Age in microseconds and number of requests.
    pub(super) published: UsageView,
    pub(super) wants_one: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct UsageResponse {
    pub(super) is_admitted: bool,
    pub(super) view: UsageView,
}

/// What the database counts in a window.
#[derive(Debug)]
pub(super) struct StoredUsage {
    pub(super) window: WindowKey,
    pub(super) window_s: u32,
    pub(super) view: UsageView,
}

/// Counts the requests of many windows in one statement. Requests for the same window share a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountRequestsOp;

impl BatchOp for CountRequestsOp {
    type Request = UsageRequest;
    type Response = UsageResponse;

    /// Bounds how long the statement holds the locks of its first windows.
    const MAX_BATCH: usize = 128;

    async fn execute_batch(
        self,
        pool: PgPool,
        requests: Vec<UsageRequest>,
    ) -> Result<BatchResponse<UsageResponse>, sqlx::Error> {
        // In order of the keys: the lock order of all callers.
        let mut windows: BTreeMap<(Uuid, &str), Vec<usize>> = BTreeMap::new();
        for (index, request) in requests.iter().enumerate() {
            let key = (request.window.owner_id, request.window.class.into_str());
            windows.entry(key).or_default().push(index);
        }
        let windows: Vec<Vec<usize>> = windows.into_values().collect();
        let counted = count(&pool, &requests, &windows).await?;
        let mut responses: BatchResponse<UsageResponse> = requests.iter().map(|_| None).collect();
        for (members, (mut admitted, view)) in windows.iter().zip(counted) {
            for index in members {
                let is_admitted = requests[*index].wants_one && admitted > 0;
                admitted -= i32::from(is_admitted);
                let view = view.clone();
                responses[*index] = Some(Ok(UsageResponse { is_admitted, view }));
            }
        }
        Ok(responses)
    }
}

/// Arguments of the statement, a row per window.
#[derive(Default)]
struct Arguments {
    owners: Vec<Uuid>,
    classes: Vec<String>,
    quotas: Vec<i32>,
    windows_s: Vec<i32>,
    wanted: Vec<i32>,
    /// First and last position of the window's requests in the two arrays below, from 1.
    first: Vec<i32>,
    last: Vec<i32>,
    ages_us: Vec<i64>,
    counts: Vec<i32>,
}

impl Arguments {
    fn push(&mut self, requests: &[UsageRequest], members: &[usize]) {
        let members = || members.iter().map(|index| &requests[*index]);
        let Some(newest) = members().next_back() else {
            return;
        };
        self.owners.push(newest.window.owner_id);
        self.classes.push(newest.window.class.into_str().to_owned());
        self.quotas.push(to_integer(newest.limit.quota));
        self.windows_s.push(to_integer(newest.limit.window_s));
        let wanted = members().filter(|request| request.wants_one).count();
        self.wanted.push(i32::try_from(wanted).unwrap_or(i32::MAX));
        self.first.push(self.end() + 1);
        for (age_us, number) in members().flat_map(|request| &request.published) {
            self.ages_us.push(*age_us);
            self.counts.push(to_integer(*number));
        }
        self.last.push(self.end());
    }

    fn end(&self) -> i32 {
        i32::try_from(self.ages_us.len()).unwrap_or(i32::MAX)
    }
}

/// Returns, for each window in its order, how many more requests it admits, and all that count.
async fn count(
    pool: &PgPool,
    requests: &[UsageRequest],
    windows: &[Vec<usize>],
) -> Result<Vec<(i32, UsageView)>, sqlx::Error> {
    let mut arguments = Arguments::default();
    windows
        .iter()
        .for_each(|members| arguments.push(requests, members));
    let counted = sqlx::query!(
        r#"SELECT w.number::integer AS "number!",
                  c.admitted AS "admitted!",
                  c.ages_us AS "ages_us!: Vec<i64>",
                  c.counts AS "counts!: Vec<i32>"
             FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::integer[], $5::integer[], $6::integer[], $7::integer[])
                  WITH ORDINALITY AS w (owner_id, class, quota, window_s, wanted, first, last, number)
            CROSS JOIN LATERAL count_requests_v1(
                  w.owner_id, w.class, w.quota, w.window_s, ($8::bigint[])[w.first:w.last], ($9::integer[])[w.first:w.last], w.wanted) AS c"#,
        &arguments.owners,
        &arguments.classes,
        &arguments.quotas,
        &arguments.windows_s,
        &arguments.wanted,
        &arguments.first,
        &arguments.last,
        &arguments.ages_us,
        &arguments.counts,
    );
    let mut results = vec![(0, UsageView::new()); windows.len()];
    for row in counted.fetch_all(pool).await? {
        if let Some(result) = results.get_mut(request_index(row.number)?) {
            *result = (row.admitted, to_view(&row.ages_us, &row.counts));
        }
    }
    Ok(results)
}

/// Loads what counts, in all windows or in those of these owners.
pub(super) async fn load(pool: &PgPool, owners: Option<Vec<Uuid>>) -> Result<Vec<StoredUsage>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT u.owner_id,
                  u.class,
                  u.window_s,
                  u.counts,
                  ARRAY(SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - b.at_us
                          FROM unnest(u.at_us) WITH ORDINALITY AS b (at_us, number)
                         ORDER BY b.number) AS "ages_us!: Vec<i64>"
             FROM rate_limit_usage AS u
            WHERE u.expires_at > clock_timestamp()
              AND ($1::uuid[] IS NULL OR u.owner_id = ANY ($1))"#,
        owners.as_deref(),
    );
    let rows = rows.fetch_all(pool).await?;
    let usages = rows.into_iter().filter_map(|row| {
        // A class of a later version is none of this one's.
        let class: RequestClass = row.class.parse().ok()?;
        Some(StoredUsage {
            window: WindowKey {
                owner_id: row.owner_id,
                class,
            },
            window_s: row.window_s.cast_unsigned(),
            view: to_view(&row.ages_us, &row.counts),
        })
    });
    Ok(usages.collect())
}

/// Deletes windows in which nothing counts any more, except those that are in use.
pub(super) async fn purge(pool: &PgPool) -> Result<(), sqlx::Error> {
    let deleted = sqlx::query!(
        "DELETE FROM rate_limit_usage AS u
          USING (SELECT e.owner_id, e.class
                   FROM rate_limit_usage AS e
                  WHERE e.expires_at NOT BETWEEN clock_timestamp() - interval '1 minute'
                                             AND clock_timestamp() + make_interval(secs => 2 * e.window_s)
                    FOR UPDATE SKIP LOCKED) AS ended
          WHERE u.owner_id = ended.owner_id AND u.class = ended.class"
    );
    deleted.execute(pool).await.map(drop)
}

/// The number of live nodes with this one, whose lease may have lapsed.
pub(super) async fn count_nodes(pool: &PgPool, this: &NodeIdentity) -> Result<u32, sqlx::Error> {
    let others = sqlx::query_scalar!(
        r#"SELECT count(*) AS "others!"
             FROM nodes
            WHERE node <> $1
              AND is_lease_live_v1(lease_until, renewed_at)"#,
        this.name,
    );
    let others = others.fetch_one(pool).await?;
    Ok(u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1))
}

fn to_view(ages_us: &[i64], counts: &[i32]) -> UsageView {
    let counts = counts.iter().map(|count| count.cast_unsigned());
    ages_us.iter().copied().zip(counts).collect()
}

fn to_integer(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
