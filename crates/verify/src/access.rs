//! Invariants of credentials and fencing.

use super::{Invariant, MAX_ROWS, to_bigint};

pub(super) const INVARIANTS: &[Invariant] = &[
    invariant!(
        "access.partner",
        "a credential belongs to an existing partner",
        "SELECT format('credential %s', c.credential_id)
           FROM credentials AS c
          WHERE NOT EXISTS (SELECT FROM partners AS p WHERE p.partner_id = c.partner_id)"
    ),
    invariant!(
        "access.papers",
        "in production the partner of a live credential is certified and has signed the agreement",
        "SELECT format('credential %s of partner %s', c.credential_id, c.partner_id)
           FROM credentials AS c
           JOIN partners AS p ON p.partner_id = c.partner_id
           JOIN deployment AS d ON d.environment = 'production'
          WHERE c.revoked_at IS NULL
            AND (p.certified_at IS NULL OR p.agreement_signed_at IS NULL)"
    ),
    invariant!(
        "fence.lanes",
        "a lane belongs to an existing node",
        "SELECT format('lane %s of node %s', l.lane, l.node)
           FROM lanes AS l
          WHERE NOT EXISTS (SELECT FROM nodes AS n WHERE n.node = l.node)"
    ),
    invariant!(
        "fence.deployment",
        "a database with partners belongs to one environment",
        "SELECT format('%s environments', count(*))
           FROM deployment
         HAVING count(*) > 1 OR (count(*) = 0 AND EXISTS (SELECT FROM partners))"
    ),
];
