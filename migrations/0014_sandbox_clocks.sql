-- expand

-- Test clocks of partners in the sandbox: by how much each one advanced its time, and when. Empty in production.
CREATE TABLE sandbox_clocks (
    partner_id uuid PRIMARY KEY,
    advances   jsonb NOT NULL DEFAULT '[]'
);
