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
        "access.audited",
        "an operator, a token of an operator and a credential have the audit entry of their creation, and \
         of their end if they have ended",
        "SELECT format('operator %s', o.name)
           FROM operators AS o
          WHERE NOT EXISTS (
                SELECT FROM audit_log AS a WHERE a.subject = o.name AND a.action = 'operator.create')
          UNION ALL
         SELECT format('token %s', t.id)
           FROM (SELECT 'otk_' || replace(t.token_id::text, '-', '') AS id, t.revoked_at FROM operator_tokens AS t) AS t
          WHERE NOT EXISTS (
                SELECT FROM audit_log AS a WHERE a.subject = t.id AND a.action = 'operator_token.issue')
             OR (t.revoked_at IS NULL) = EXISTS (
                SELECT FROM audit_log AS a WHERE a.subject = t.id AND a.action = 'operator_token.revoke')
          UNION ALL
         SELECT format('credential %s', c.id)
           FROM (SELECT 'cred_' || replace(c.credential_id::text, '-', '') AS id, c.revoked_at FROM credentials AS c) AS c
          WHERE NOT EXISTS (
                SELECT FROM audit_log AS a WHERE a.subject = c.id AND a.action = 'credential.issue')
             OR (c.revoked_at IS NULL) = EXISTS (
                SELECT FROM audit_log AS a WHERE a.subject = c.id AND a.action = 'credential.revoke')"
    ),
    invariant!(
        "access.role",
        "the role of an operator, and whether it is disabled, are those of the newest audit entry about the account",
        "SELECT format('operator %s: %s, %s', o.name, o.role, a.after)
           FROM operators AS o
          CROSS JOIN LATERAL (
                SELECT a.after
                  FROM audit_log AS a
                 WHERE a.subject = o.name AND a.action IN ('operator.create', 'operator.change')
                 ORDER BY a.audit_id DESC
                 LIMIT 1
                ) AS a
          WHERE a.after ->> 'role' <> o.role
             OR (a.after ->> 'disabled')::boolean <> o.disabled"
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
