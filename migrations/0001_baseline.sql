-- The schema of version 1.0.0-rc.1. Released: never edited (CONTRIBUTING.md, "Schema changes").
--
-- The key of every table that a partner owns begins with partner_id, and stock is keyed by SKU: both can be sharded later. Money
-- is bigint minor units. Timestamps that decide come from this database's clock. Columns and tables without a comment hold what
-- the API field of the same name describes.
--
-- All writers lock in one order, each kind sorted by its key:
--   lanes, idempotency_keys, orders, payouts, wallets, chunks, allocations, codes (blind index), feeds
--   webhooks, webhook_progress, deliveries

-- Deployment, nodes and lanes ------------------------------------------------------------------------------------------------

-- The environment of this database. The service of the other environment rejects it.
CREATE TABLE deployment (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    environment text NOT NULL CHECK (environment IN ('sandbox', 'production')),
    created_at  timestamptz NOT NULL DEFAULT now()
);

-- Installed SQL functions with the SHA-256 of their source files.
CREATE TABLE functions (
    name   text PRIMARY KEY,
    digest bytea NOT NULL
);

-- Service processes that write to this database. Each start takes the next incarnation, which fences off an earlier process of
-- the same node. Another node may claim this node's chunks only after the lease has expired.
CREATE TABLE nodes (
    node          text PRIMARY KEY,
    incarnation   bigint NOT NULL,
    lease_until   timestamptz NOT NULL,
    -- Evidence of the database's clock, so that a step of it is recognized: when the lease was renewed, and the latest time that any
    -- renewal of the node has seen.
    renewed_at    timestamptz NOT NULL,
    latest_clock  timestamptz NOT NULL,
    -- Version and start of the program that last took an incarnation of the node.
    version       text NOT NULL,
    started_at    timestamptz NOT NULL,
    wrapping_keys text[] -- that this incarnation has loaded; null: not reported yet
);

-- The fence of each lane: a batch is written only under the generation it was sent with, and leaves its number, from which
-- recovery reads whether it was committed.
CREATE TABLE lanes (
    node       text NOT NULL,
    lane       smallint NOT NULL,
    generation bigint NOT NULL,
    batch      bigint NOT NULL,
    PRIMARY KEY (node, lane)
) WITH (fillfactor = 20); -- updated by every batch: room for the next version on the same page

-- Identity of the server and the tables that the service last wrote to. A restored dump has other oids, a point-in-time recovery
-- and a promoted standby have another timeline, and another cluster has another system identifier. Stock is quarantined then: a
-- voucher that is free here may have been sold on the lost timeline.
CREATE TABLE continuity (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    system_identifier bigint NOT NULL,
    timeline          bigint NOT NULL,
    database_oid      bigint NOT NULL,
    table_oid         bigint NOT NULL, -- of allocations
    quarantined_at    timestamptz, -- null: no stock is quarantined
    quarantine_reason text,
    compared_at       timestamptz, -- with a list of the vouchers that were sold
    last_code_id      bigint, -- the highest code at the quarantine: ids above it name other codes on the lost timeline
    quarantine_epoch  bigint NOT NULL DEFAULT 0, -- number of quarantines
    CHECK ((quarantined_at IS NULL) = (quarantine_reason IS NULL)),
    CHECK ((quarantined_at IS NULL) = (last_code_id IS NULL))
);

-- Partners and credentials ---------------------------------------------------------------------------------------------------

CREATE TABLE partners (
    partner_id          uuid PRIMARY KEY,
    name                text NOT NULL,
    allowlist           text[] NOT NULL,
    limits              jsonb NOT NULL DEFAULT '{}',
    suspended           boolean NOT NULL DEFAULT false,
    approval_rule       jsonb,
    catalogue           jsonb,
    cancel_window_s     integer NOT NULL DEFAULT 86400 CHECK (cancel_window_s >= 0),
    certified_at        timestamptz,
    agreement_signed_at timestamptz,
    created_at          timestamptz NOT NULL DEFAULT now(),
    updated_at          timestamptz NOT NULL DEFAULT now(),
    codes_blocked       boolean NOT NULL DEFAULT false, -- a suspended partner may not even read the codes of its orders
    ceilings            jsonb NOT NULL DEFAULT '{}', -- rate limits of all credentials of the partner together, by class, in the form of limits
    caps                jsonb, -- caps that override the service's settings. Null: those of the settings apply; an empty object: none apply
    mac                 bytea -- HMAC of the row under a key of the vault. A row without the right one grants nothing
);

-- What counts against the daily caps of a partner, written only where one applies: cancellations, and totals of orders in minor units.
-- Rows are removed after a week.
CREATE TABLE partner_usage (
    partner_id uuid NOT NULL,
    day        date NOT NULL, -- UTC
    counter    text NOT NULL, -- the kind of cap, currency and credential, as far as it has them, joined by slashes
    value      bigint NOT NULL CHECK (value >= 0),
    PRIMARY KEY (partner_id, day, counter)
) WITH (fillfactor = 50);

-- Requests that count against the rate limits, by family of credentials and class, for all nodes together: a row has the times and numbers of
-- up to some 65 buckets (count_requests_v1). Unlogged: a crash or a failover of the database loses what was counted, so counts
-- start with what the nodes publish next, and a window may admit its quota once more. The free space keeps updates on their page.
CREATE UNLOGGED TABLE rate_limit_usage (
    owner_id   uuid NOT NULL, -- first credential of a family, or a partner
    class      text NOT NULL,
    at_us      bigint[] NOT NULL, -- ends of the buckets, microseconds since 1970
    counts     integer[] NOT NULL,
    window_s   integer NOT NULL,
    expires_at timestamptz NOT NULL, -- when no bucket counts any more
    PRIMARY KEY (owner_id, class)
) WITH (fillfactor = 50);

-- Keys and secrets are random and long, so a plain SHA-256 of each suffices, and nothing else of them is stored.
--
-- Rotation by the partner: an unused successor is revoked when the same credential asks again, because then the response that
-- contained it was lost. The first use is recorded only for credentials that came from a rotation.
--
-- A credential and all that came from it by rotation are a family, which shares its rate limits. A credential names the one that it
-- came from also after that one was purged: the HMAC of the row covers the name.
CREATE TABLE credentials (
    credential_id uuid PRIMARY KEY,
    partner_id    uuid NOT NULL REFERENCES partners,
    key_hash      bytea NOT NULL UNIQUE CHECK (length(key_hash) = 32),
    secret_hash   bytea NOT NULL CHECK (length(secret_hash) = 32),
    allowlist     text[],
    not_before    timestamptz NOT NULL DEFAULT now(),
    not_after     timestamptz,
    revoked_at    timestamptz,
    rotated_from  uuid,
    rotated_at    timestamptz,
    first_used_at timestamptz,
    family_id     uuid NOT NULL, -- the first of the family
    issued_at     timestamptz NOT NULL DEFAULT clock_timestamp(), -- counts the rotations of a day
    scopes        text[], -- what the credential may do; null: everything
    mac           bytea, -- as in partners
    CONSTRAINT first_use_of_rotated CHECK (first_used_at IS NULL OR rotated_from IS NOT NULL)
);
CREATE INDEX credentials_of_partner ON credentials (partner_id);
CREATE INDEX credentials_rotated_from ON credentials (rotated_from) WHERE rotated_from IS NOT NULL;
CREATE INDEX credentials_by_end ON credentials ((LEAST(revoked_at, not_after)));

-- What the sandbox observed of a partner, as far as its certification needs it: ids and hashes, never a body, a key, a signature
-- or a code. The service deletes the oldest beyond some hundred rows per partner and check.
CREATE TABLE certification_observations (
    partner_id     uuid NOT NULL,
    check_name     text NOT NULL,
    observation_id bigint GENERATED ALWAYS AS IDENTITY,
    at             timestamptz NOT NULL,
    observation    jsonb NOT NULL,
    PRIMARY KEY (partner_id, check_name, observation_id)
);
-- Nodes poll the newest of all partners each second.
CREATE INDEX certification_observations_by_time ON certification_observations (at);

-- Operators ------------------------------------------------------------------------------------------------------------------

-- Operators and their API tokens. A token's text is stored nowhere: its hash identifies it. Rows of these tables have HMACs like
-- partners.
CREATE TABLE operators (
    name       text PRIMARY KEY,
    role       text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    disabled   boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- An account that a second operator has confirmed is inactive until its holder redeems the code of its first token.
    active     boolean NOT NULL DEFAULT true,
    mac        bytea
);

CREATE TABLE operator_tokens (
    token_id        uuid PRIMARY KEY,
    operator        text NOT NULL REFERENCES operators,
    token_hash      bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz, -- null: a sandbox's first token
    last_used_at    timestamptz, -- written at most once a minute
    revoked_at      timestamptz,
    -- A token that another operator has requested is inactive until its holder redeems the code that the confirming operator
    -- received; null: it is active.
    activation_hash bytea CHECK (length(activation_hash) = 32),
    session_id      uuid, -- the session that issued it, with which it ends
    mac             bytea
);
CREATE INDEX operator_tokens_of_operator ON operator_tokens (operator, token_id);

-- Sessions of operators in the console, and the links that begin one. A token's text is stored nowhere: its hash identifies it.
CREATE TABLE operator_sessions (
    session_id       uuid PRIMARY KEY,
    operator         text NOT NULL REFERENCES operators,
    token_hash       bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    method           text NOT NULL CHECK (method IN ('link', 'oidc')),
    address          text NOT NULL, -- of the client that signed in
    created_at       timestamptz NOT NULL DEFAULT now(),
    last_used_at     timestamptz NOT NULL DEFAULT now(), -- written at most once a minute
    expires_at       timestamptz NOT NULL,
    ended_at         timestamptz, -- signed out
    mac              bytea,
    -- When the person authenticated at the identity provider, by the provider's clock; null: by a one-time link, or the provider did
    -- not say. Money is moved by sessions with a recent one.
    authenticated_at timestamptz
);
CREATE INDEX operator_sessions_of_operator ON operator_sessions (operator, session_id);

-- An operator has one link at most: a new one replaces it. Its use deletes it.
CREATE TABLE operator_sign_in_links (
    operator   text PRIMARY KEY REFERENCES operators,
    token_hash bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    expires_at timestamptz NOT NULL,
    mac        bytea
);

-- Which account belongs to whom at an identity provider. A subject is never given to another person, an e-mail address is.
CREATE TABLE operator_identities (
    issuer   text NOT NULL,
    subject  text NOT NULL,
    operator text NOT NULL UNIQUE REFERENCES operators,
    mac      bytea,
    PRIMARY KEY (issuer, subject)
);

-- Changes that wait for a second operator. The change itself is encrypted: it may contain voucher codes.
CREATE TABLE change_requests (
    request_id   uuid PRIMARY KEY,
    kind         text NOT NULL,
    object       text NOT NULL,  -- id of the object that is changed, or name of the operator
    details      jsonb NOT NULL, -- what the second operator sees of the change: no code, no secret
    sealed       bytea,          -- null once the request has ended
    requested_by text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    status       text NOT NULL DEFAULT 'WAITING',
    decided_by   text,
    decided_at   timestamptz,
    reason       text,           -- why it was declined
    error_code   text,           -- why the confirmed change was refused
    CHECK (status IN ('WAITING', 'CONFIRMED', 'EXECUTED', 'REFUSED', 'DECLINED', 'EXPIRED')),
    CHECK (status NOT IN ('CONFIRMED', 'EXECUTED', 'REFUSED') OR decided_by <> requested_by),
    CHECK ((sealed IS NULL) = (status IN ('EXECUTED', 'REFUSED', 'DECLINED', 'EXPIRED')))
);
CREATE INDEX change_requests_open ON change_requests (expires_at) WHERE status IN ('WAITING', 'CONFIRMED');

-- Catalogue and vendors ------------------------------------------------------------------------------------------------------

CREATE TABLE categories (
    category_id text PRIMARY KEY,
    name        text NOT NULL,
    parent_id   text REFERENCES categories
);

CREATE TABLE products (
    product_id        text PRIMARY KEY,
    name              text NOT NULL,
    brand             text NOT NULL,
    category_id       text NOT NULL REFERENCES categories,
    vendor            text NOT NULL,
    currency          text NOT NULL,
    countries         text[] NOT NULL,
    denominations     bigint[] NOT NULL,
    range_min         bigint,
    range_max         bigint,
    range_step        bigint CHECK (range_step > 0),
    expiry_policy     jsonb NOT NULL,
    redemption        jsonb NOT NULL,
    route             text NOT NULL CHECK (route IN ('stock', 'vendor')),
    approval          text NOT NULL CHECK (approval IN ('always', 'rule')),
    returnable        boolean NOT NULL,
    min_validity_days integer NOT NULL CHECK (min_validity_days >= 0),
    low_stock_at      integer NOT NULL CHECK (low_stock_at >= 0),
    discontinued      boolean NOT NULL,
    updated_at        timestamptz NOT NULL DEFAULT now(),
    code_identity     text NOT NULL DEFAULT 'code',
    -- Whether codes of the product that differ only in case are one code. The products of a brand agree, and it stays as it is once one
    -- of them has stock: the blind indexes contain it.
    code_case         text NOT NULL DEFAULT 'exact', -- exact, ignored
    CONSTRAINT code_identity_known CHECK (code_identity IN ('code', 'code_and_pin'))
);

-- The credential is encrypted under a data key, like codes, and is sent to the vendor alone.
CREATE TABLE vendors (
    vendor_id   text PRIMARY KEY,
    adapter     text NOT NULL CHECK (adapter IN ('mock', 'http', 'manual')),
    url         text,
    key_id      integer,
    nonce       bytea CHECK (length(nonce) = 12),
    ciphertext  bytea,
    concurrency integer NOT NULL CHECK (concurrency > 0),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    -- Only an adapter that calls a vendor has a URL and a credential.
    CHECK ((adapter = 'http') = (url IS NOT NULL)),
    CHECK ((adapter = 'http') = (key_id IS NOT NULL)),
    CHECK (num_nulls(key_id, nonce, ciphertext) IN (0, 3))
);

-- Codes and stock ------------------------------------------------------------------------------------------------------------

-- Data keys, wrapped by a master key or by a key of a key manager.
CREATE TABLE data_keys (
    key_id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    purpose      text NOT NULL CHECK (purpose IN ('codes', 'blind_index')),
    wrapped      bytea NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    wrapped_by   text NOT NULL, -- the wrapping key
    codes_before bigint NOT NULL DEFAULT 0, -- number of codes before the key was created
    reencrypted  bigint NOT NULL DEFAULT 0 -- number of old codes that were encrypted again under the key
);
CREATE UNIQUE INDEX one_blind_index_key ON data_keys (purpose) WHERE purpose = 'blind_index';

-- Requests to encrypt old codes again under a newer data key. The nodes go through the codes by their ids, in batches.
CREATE TABLE code_reencryptions (
    reencryption_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    requested_at    timestamptz NOT NULL DEFAULT now(),
    key_id          integer NOT NULL,           -- the newest data key at the request: older ones are replaced
    position        bigint NOT NULL DEFAULT 0,  -- codes up to this id are done
    codes           bigint NOT NULL DEFAULT 0,  -- encrypted again
    failures        bigint NOT NULL DEFAULT 0,  -- could not be decrypted, and stay
    ended_at        timestamptz
);
CREATE UNIQUE INDEX one_open_code_reencryption ON code_reencryptions ((ended_at IS NULL)) WHERE ended_at IS NULL;

-- Batches of imported stock. A repeated import of a batch continues it.
CREATE TABLE stock_imports (
    import_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    vendor     text NOT NULL,
    batch      text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (vendor, batch)
);

-- Encrypted codes. No order updates this table. The blind index makes a code and pin of a brand unique permanently.
-- The code index is a keyed hash of brand and code without the PIN, which finds the same code with another PIN. A voucher that
-- shares its code with an earlier one has its blind index there, which differs from every code index.
--
-- No foreign keys: they would cost an import a third of its rate, and `vouchsafe verify` checks the same references.
CREATE TABLE codes (
    code_id          bigint PRIMARY KEY,
    product_id       text NOT NULL,
    denomination     bigint NOT NULL,
    blind_index      bytea NOT NULL UNIQUE CHECK (length(blind_index) = 32),
    key_id           integer NOT NULL,
    nonce            bytea NOT NULL CHECK (length(nonce) = 12),
    ciphertext       bytea NOT NULL,
    purchase_id      uuid, -- null: imported
    vendor_reference text, -- the vendor's id of the voucher
    bought_at        timestamptz, -- null: imported. Its day decides when the vendor's records must contain the voucher
    code_index       bytea NOT NULL,
    import_id        bigint -- the batch of imported stock; null: bought
);
CREATE SEQUENCE code_ids AS bigint;
CREATE INDEX codes_of_purchase ON codes (purchase_id) WHERE purchase_id IS NOT NULL;
CREATE INDEX codes_by_bought_at ON codes (bought_at) WHERE bought_at IS NOT NULL;
CREATE INDEX codes_by_reference ON codes (vendor_reference) WHERE vendor_reference IS NOT NULL;
CREATE UNIQUE INDEX codes_by_code_index ON codes (code_index);

-- Epoch of a new chunk, whose vouchers were not sold on a lost timeline. A quarantine waits until the chunk is visible, or the chunk has
-- its epoch: a release would else miss a chunk with the epoch before.
CREATE FUNCTION new_chunk_epoch() RETURNS bigint LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
    v_epoch bigint;
BEGIN
    SELECT q.quarantine_epoch INTO v_epoch FROM continuity AS q WHERE q.only_row FOR SHARE;
    RETURN COALESCE(v_epoch, 0);
END
$$;

-- Nodes claim stock by the chunk: about 500 vouchers of one SKU with neighbouring expiry, whose rows are neighbours too. An
-- emptied chunk never has vouchers to sell again. The stock rows of a chunk never change, so one expiry pass a day suffices.
--
-- Stock is quarantined by comparison: a chunk that was cleared before the last quarantine is not sold. The detection of a lost commit
-- writes one row, however much stock there is.
--
-- Stock levels are added up from the counts of emptied chunks, which never change: an emptied chunk has no free voucher, and an
-- allocation stays an order's or a withdrawal's. The other vouchers of the chunk were sold.
CREATE TABLE chunks (
    chunk_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id     text NOT NULL REFERENCES products,
    denomination   bigint NOT NULL,
    first_expiry   date, -- of the voucher that expires first; null: none expires
    last_expiry    date, -- null: at least one never expires
    first_stock_id bigint NOT NULL,
    last_stock_id  bigint NOT NULL CHECK (last_stock_id >= first_stock_id),
    node           text,
    incarnation    bigint,
    emptied        boolean NOT NULL DEFAULT false,
    reservation_id uuid,
    expired_before date, -- free vouchers that expired before this day are withdrawn; null: the expiry job has not seen the chunk
    voided         integer, -- null: not counted yet
    expired        integer,
    restocked      integer, -- vouchers that came back from an order. Each is in stock a second time, and as many rows before are returned
    cleared_epoch  bigint NOT NULL DEFAULT new_chunk_epoch() -- below continuity.quarantine_epoch: the chunk is quarantined, unless emptied
);
-- Finds the chunks of a SKU that can be claimed, and those that are quarantined, without reading the others.
CREATE INDEX chunks_by_clearance ON chunks (product_id, denomination, cleared_epoch, first_expiry NULLS LAST, chunk_id) WHERE NOT emptied;
CREATE INDEX chunks_of_reservation ON chunks (reservation_id) WHERE reservation_id IS NOT NULL;
CREATE INDEX chunks_to_expire ON chunks (first_expiry, chunk_id) WHERE NOT emptied;
CREATE INDEX chunks_to_count ON chunks (chunk_id) WHERE emptied AND voided IS NULL;
CREATE INDEX chunks_uncounted ON chunks (product_id, denomination) WHERE voided IS NULL; -- does not grow with what was ever sold
COMMENT ON COLUMN chunks.reservation_id IS
    'Reservation that keeps the chunk from the shelves: the purchase whose order gets it, or an id of its own for orders that wait for the SKU.';

-- Vouchers in stock. Never updated: allocations says who holds a voucher. A returned voucher gets a new row.
CREATE TABLE stock (
    stock_id bigint PRIMARY KEY,
    chunk_id bigint NOT NULL,
    code_id  bigint NOT NULL,
    expiry   date -- the last valid day; null: never expires
);
CREATE SEQUENCE stock_ids AS bigint;
CREATE INDEX stock_by_code ON stock (code_id);

-- Demands of nodes for stock that other nodes own. A row counts for a second after its last renewal. Unlogged: after a crash no
-- node waits any longer.
CREATE UNLOGGED TABLE stock_demands (
    product_id   text NOT NULL,
    denomination bigint NOT NULL,
    node         text NOT NULL,
    quantity     bigint NOT NULL, -- vouchers that the node's waiting orders lack
    demanded_at  timestamptz NOT NULL, -- the oldest demand of a SKU is served first
    renewed_at   timestamptz NOT NULL,
    PRIMARY KEY (product_id, denomination, node)
);

-- Number of vouchers of a SKU that belonged to orders at a time, written at most once an hour and only after a change. What was sold
-- within a week is the difference to the newest row that is a week old.
CREATE TABLE stock_sold (
    product_id   text NOT NULL REFERENCES products,
    denomination bigint NOT NULL,
    at           timestamptz NOT NULL,
    sold         bigint NOT NULL,
    PRIMARY KEY (product_id, denomination, at)
);
CREATE INDEX stock_sold_by_time ON stock_sold (at);

-- Sums over the counted chunks of a SKU, which never change. A chunk is added by the transaction that counts it.
CREATE TABLE stock_totals (
    product_id   text NOT NULL REFERENCES products,
    denomination bigint NOT NULL,
    loaded       bigint NOT NULL, -- without vouchers that came back: they are counted in their first chunk
    voided       bigint NOT NULL,
    expired      bigint NOT NULL,
    PRIMARY KEY (product_id, denomination)
);

-- Holders of vouchers. At most one row per stock row, ever: the primary key prevents selling a voucher twice.
--
-- Tables that every order writes have no check of known values: Postgres parses the expression of each check constraint again in every
-- statement that writes the table, and these took a tenth of the instructions of a commit of one order. The program writes the values
-- from types, and `vouchsafe verify` reports others. Checks of amounts and of what belongs together stay.
CREATE TABLE allocations (
    stock_id           bigint PRIMARY KEY,
    voucher_id         uuid, -- the public id; null if withdrawn
    partner_id         uuid,
    order_id           uuid,
    line               smallint,
    withdrawal_reason  text, -- withdrawn from sale without an order: void, expired
    first_retrieved_at timestamptz,
    returned_at        timestamptz, -- the order no longer shows the voucher; this row stays allocated, the code has a new stock row
    CHECK ((order_id IS NULL) = (withdrawal_reason IS NOT NULL)),
    CHECK ((order_id IS NULL) = (voucher_id IS NULL AND partner_id IS NULL AND line IS NULL))
);
CREATE INDEX allocations_of_order ON allocations (partner_id, order_id) WHERE order_id IS NOT NULL;
-- The order of a voucher, by the id that the partner knows, for an operator's rare search. A BRIN index, because a B-tree would add
-- 75 B of WAL to each voucher sold. Ids begin with the time of the sale, so a range of pages has few of them; first retrieval and
-- return may move rows to other pages, for which a range keeps several intervals.
CREATE INDEX allocations_by_voucher ON allocations USING brin (voucher_id uuid_minmax_multi_ops) WITH (pages_per_range = 2, autosummarize = on);

-- Orders ---------------------------------------------------------------------------------------------------------------------

-- lines and timeline cost each batch: lines is JSON that the database does not parse, and an order that stands as it was placed
-- has no timeline (see order_timeline_v1).
CREATE TABLE orders (
    partner_id         uuid NOT NULL,
    order_id           uuid NOT NULL,
    status             text NOT NULL, -- PENDING, PROCESSING, PARTIALLY_DELIVERED, DELIVERED, CANCELLED, REFUNDED
    currency           text NOT NULL,
    total              bigint NOT NULL CHECK (total > 0),
    refunded           bigint NOT NULL DEFAULT 0 CHECK (refunded >= 0 AND refunded <= total),
    fulfilled_from     text, -- cache, vendor, mixed
    pending_reason     text, -- VENDOR, APPROVAL
    closed             boolean NOT NULL,
    last_sequence      integer NOT NULL, -- of the order's events
    reference          text,
    metadata           text, -- a JSON object, exactly as the partner sent it
    lines              text NOT NULL,
    timeline           jsonb,
    codes_retrieved_at timestamptz,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    PRIMARY KEY (partner_id, order_id)
) WITH (fillfactor = 90);
-- An order id begins with its created_at, so a period is a range of the primary key, and so is the list of all orders. Most
-- orders are delivered and are found on that range; an order that is delivered at once without a reference is in no other index.
CREATE INDEX orders_by_status ON orders (partner_id, status, order_id) WHERE status <> 'DELIVERED';
CREATE INDEX orders_by_reference ON orders (partner_id, reference, order_id) WHERE reference IS NOT NULL;
-- Orders that wait for vouchers, oldest first.
CREATE INDEX orders_for_vendors ON orders (order_id) WHERE pending_reason = 'VENDOR' AND NOT closed;
-- Orders that wait for something, to count them: by reason, and of a partner. An order that is delivered at once is in neither.
CREATE INDEX orders_open ON orders (pending_reason) WHERE NOT closed;
CREATE INDEX orders_open_of_partner ON orders (partner_id) WHERE NOT closed;

-- Demand of waiting orders per SKU: one row for each SKU of which an order that waits for vouchers lacks some. A trigger maintains
-- the rows, whatever changes the order. Locked after the order.
CREATE TABLE order_demands (
    product_id   text NOT NULL,
    denomination bigint NOT NULL,
    order_id     uuid NOT NULL, -- begins with the time of acceptance: the oldest is first
    partner_id   uuid NOT NULL,
    accepted_at  timestamptz NOT NULL,
    next_at      timestamptz NOT NULL DEFAULT now(), -- when the service looks whether the order can proceed
    PRIMARY KEY (product_id, denomination, order_id)
);
CREATE INDEX order_demands_due ON order_demands (product_id, denomination, next_at);
CREATE INDEX order_demands_of_order ON order_demands (order_id);
-- The orders that are due, of whatever SKU: looking when none is due costs nothing.
CREATE INDEX order_demands_by_time ON order_demands (next_at);

-- Writes the demands of an order and makes it due. Plans must stay index probes, whatever the table size was at plan time.
CREATE FUNCTION update_order_demands() RETURNS trigger LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
BEGIN
    DELETE FROM order_demands WHERE order_id = NEW.order_id;
    IF NEW.pending_reason = 'VENDOR' AND NOT NEW.closed THEN
        INSERT INTO order_demands (product_id, denomination, order_id, partner_id, accepted_at)
        SELECT DISTINCT l ->> 'p', (l ->> 'd')::bigint, NEW.order_id, NEW.partner_id, NEW.created_at
          FROM jsonb_array_elements(NEW.lines::jsonb) AS l
         WHERE (l ->> 'q')::integer > (l ->> 'a')::integer + COALESCE((l ->> 'f')::integer, 0);
    END IF;
    RETURN NULL;
END
$$;

-- The conditions keep the triggers from being called for orders that are delivered at once.
CREATE TRIGGER new_order_demands AFTER INSERT ON orders
    FOR EACH ROW WHEN (NEW.pending_reason = 'VENDOR' AND NOT NEW.closed)
    EXECUTE FUNCTION update_order_demands();
CREATE TRIGGER changed_order_demands AFTER UPDATE ON orders
    FOR EACH ROW WHEN (OLD.pending_reason = 'VENDOR' AND NOT OLD.closed OR NEW.pending_reason = 'VENDOR' AND NOT NEW.closed)
    EXECUTE FUNCTION update_order_demands();

-- Responses stored under idempotency keys. The key is a hash of partner, endpoint and key text: short, and evenly distributed.
-- No index finds expired rows: it cost each order more CPU and WAL than the sweep that removes them (StoredResponses::purge_expired).
CREATE TABLE idempotency_keys (
    key         uuid PRIMARY KEY,
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    status      smallint NOT NULL,
    body        bytea NOT NULL,
    expires_at  timestamptz NOT NULL -- infinity: never
);

-- Purchases from vendors for order lines. The id is the idempotency key at the vendor: it is committed before the request is
-- sent, and the service asks for an unknown outcome under it until it is known.
CREATE TABLE purchases (
    purchase_id      uuid PRIMARY KEY,
    partner_id       uuid NOT NULL,
    order_id         uuid NOT NULL,
    line             smallint NOT NULL,
    vendor           text NOT NULL,
    product_id       text NOT NULL,
    denomination     bigint NOT NULL,
    currency         text NOT NULL,
    quantity         integer NOT NULL CHECK (quantity > 0),
    expiry_policy    jsonb NOT NULL,
    requested_at     timestamptz NOT NULL,
    sent             boolean NOT NULL DEFAULT false, -- the vendor may have received the request
    ended            boolean NOT NULL DEFAULT false, -- no more vouchers will come
    last_message     text,                           -- why not all vouchers were delivered at the last response
    next_at          timestamptz NOT NULL DEFAULT now(),
    claimed_by       text,                           -- the node that is calling the vendor
    claimed_until    timestamptz,
    last_response    text,
    last_response_at timestamptz,
    sold             integer NOT NULL DEFAULT 0,     -- vouchers that the vendor has sold under this id
    quarantined      text[] NOT NULL DEFAULT '{}',   -- the vendor's ids of those that were sold before; never stored as codes
    UNIQUE (partner_id, order_id, line)
);
CREATE INDEX purchases_due ON purchases (vendor, next_at) WHERE NOT ended;
CREATE INDEX purchases_of_order ON purchases (order_id);
CREATE INDEX purchases_of_vendor ON purchases (vendor, requested_at);
-- Recent out-of-stock responses, and later sales of the same SKU that supersede them.
CREATE INDEX purchases_out_of_stock ON purchases (last_response_at) WHERE last_response = 'OUT_OF_STOCK';
CREATE INDEX purchases_sold ON purchases (product_id, denomination, last_response_at) WHERE sold > 0;

-- An order is due when one of its purchases has ended.
CREATE FUNCTION expedite_order_of_purchase() RETURNS trigger LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    -- Also if the order is due: a concurrent round may have read that the purchase is open, and postpones the order.
    UPDATE order_demands SET next_at = now() WHERE order_id = NEW.order_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER purchase_ended AFTER UPDATE OF ended ON purchases
    FOR EACH ROW WHEN (NEW.ended AND NOT OLD.ended)
    EXECUTE FUNCTION expedite_order_of_purchase();

-- Money ----------------------------------------------------------------------------------------------------------------------

CREATE TABLE wallets (
    partner_id      uuid NOT NULL,
    currency        text NOT NULL,
    balance         bigint NOT NULL DEFAULT 0 CHECK (balance >= 0),
    pending_orders  bigint NOT NULL DEFAULT 0 CHECK (pending_orders >= 0),
    pending_payouts bigint NOT NULL DEFAULT 0 CHECK (pending_payouts >= 0),
    sequence        bigint NOT NULL DEFAULT 0, -- of the newest ledger entry
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (partner_id, currency)
) WITH (fillfactor = 50); -- updated by every batch

-- The entry that pays an order has the order's id, so the primary key finds it and there is at most one.
CREATE TABLE ledger (
    partner_id     uuid NOT NULL,
    transaction_id uuid NOT NULL,
    currency       text NOT NULL,
    sequence       bigint NOT NULL, -- from 1 per wallet, without gaps
    kind           text NOT NULL, -- TOP_UP, DEBIT, REFUND, PAYOUT, PAYOUT_REVERSAL, ADJUSTMENT
    amount         bigint NOT NULL,
    balance_after  bigint NOT NULL CHECK (balance_after >= 0),
    order_id       uuid,
    payout_id      uuid,
    reference      text,
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (partner_id, transaction_id),
    UNIQUE (partner_id, currency, sequence),
    CONSTRAINT debit_of_order CHECK (kind <> 'DEBIT' OR (order_id IS NOT NULL AND transaction_id = order_id))
);
-- Nearly all entries are debits: orders pay for neither index.
CREATE INDEX ledger_by_kind ON ledger (partner_id, currency, kind, sequence) WHERE kind <> 'DEBIT';
CREATE INDEX ledger_of_order ON ledger (partner_id, order_id) WHERE kind <> 'DEBIT';

-- Running totals of the orders that a wallet has paid, per second, for the order rate of caps (record_order_totals_v1). The orders of a window
-- are the difference of two of them, however many there are. The totals begin at an entry before the oldest window.
CREATE TABLE order_totals (
    partner_id uuid NOT NULL,
    currency   text NOT NULL,
    at         timestamptz NOT NULL, -- second of the last entry; '-infinity': where the totals begin
    sequence   bigint NOT NULL,      -- last ledger entry that is counted
    orders     bigint NOT NULL CHECK (orders >= 0),
    total      bigint NOT NULL CHECK (total >= 0), -- minor units
    PRIMARY KEY (partner_id, currency, at)
) WITH (fillfactor = 50); -- each batch of a second updates its row
-- For their purge. A B-tree has the order of the totals of one wallet, too: to find the last one, the planner would read those of all.
CREATE INDEX order_totals_by_time ON order_totals USING brin (at) WITH (pages_per_range = 32, autosummarize = on);

-- Payouts. The money left the wallet when the payout was accepted.
CREATE TABLE payouts (
    partner_id         uuid NOT NULL,
    payout_id          uuid NOT NULL,
    status             text NOT NULL CHECK (status IN ('PENDING', 'PAID', 'REJECTED', 'FAILED')),
    currency           text NOT NULL,
    amount             bigint NOT NULL CHECK (amount > 0),
    destination        text NOT NULL, -- a JSON object, masked
    destination_sealed bytea NOT NULL,
    reference          text,
    timeline           jsonb NOT NULL,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    PRIMARY KEY (partner_id, payout_id)
);
CREATE INDEX payouts_by_id ON payouts (payout_id); -- for operators
CREATE INDEX payouts_pending ON payouts (payout_id) WHERE status = 'PENDING'; -- counts those that wait for an operator

-- Reconciliation -------------------------------------------------------------------------------------------------------------

-- A vendor's sales records, as the vendor reported them last. A reference identifies one voucher and is never its code.
CREATE TABLE vendor_records (
    vendor       text NOT NULL,
    day          date NOT NULL,
    reference    text NOT NULL,
    purchase_id  uuid, -- null if the records do not contain it
    product_id   text NOT NULL,
    denomination bigint NOT NULL,
    currency     text NOT NULL,
    sold_at      timestamptz NOT NULL,
    PRIMARY KEY (vendor, day, reference)
);
CREATE INDEX vendor_records_by_reference ON vendor_records (vendor, reference, day);

-- Comparison of a vendor's records of a day with the codes that were bought: schedule and result.
CREATE TABLE reconciliations (
    vendor             text NOT NULL,
    day                date NOT NULL,
    requested_until    timestamptz,                        -- an operator has requested it, and it is retried until then
    attempts           integer NOT NULL DEFAULT 0,         -- failures since the last success
    next_at            timestamptz NOT NULL DEFAULT now(), -- earliest next attempt; an attempt postpones it
    last_error         text,
    source             text CHECK (source IN ('http', 'csv')),
    started_at         timestamptz,                        -- before the records were requested
    generated_at       timestamptz,
    bought_from        timestamptz,                        -- codes bought from here
    bought_to          timestamptz,                        -- to here must be in records that are known
    recorded           bigint,                             -- records of the day
    compared           bigint,                             -- vouchers on either side
    matched            bigint,
    drifted            bigint,
    unmatched          bigint,
    orders_total       bigint,
    vouchers_allocated bigint,
    PRIMARY KEY (vendor, day),
    -- A result is complete or absent.
    CHECK (num_nulls(source, started_at, generated_at, bought_from, bought_to, recorded, compared, matched, drifted, unmatched,
                     orders_total, vouchers_allocated) IN (0, 12))
);

-- The part of each order in a result, which its partner may see.
CREATE TABLE reconciled_orders (
    partner_id uuid NOT NULL,
    day        date NOT NULL,
    vendor     text NOT NULL,
    order_id   uuid NOT NULL,
    allocated  integer NOT NULL,
    matched    integer NOT NULL,
    drifted    integer NOT NULL,
    unmatched  integer NOT NULL,
    PRIMARY KEY (partner_id, day, vendor, order_id),
    FOREIGN KEY (vendor, day) REFERENCES reconciliations
);
CREATE INDEX reconciled_orders_of_result ON reconciled_orders (vendor, day);

-- Counts of the vouchers of all orders that were settled on a day: in total, by partner, and by vendor and batch.
CREATE TABLE reconciled_days (
    day             date PRIMARY KEY,
    requested_until timestamptz, -- an operator has requested it, and it is retried until then
    started_at      timestamptz, -- null: requested, not counted yet
    generated_at    timestamptz,
    CHECK ((started_at IS NULL) = (generated_at IS NULL))
);
CREATE TABLE reconciled_partners (
    day                date NOT NULL,
    partner_id         uuid NOT NULL,
    orders_total       bigint NOT NULL,
    vouchers_allocated bigint NOT NULL,
    PRIMARY KEY (day, partner_id)
);
CREATE TABLE reconciled_batches (
    day       date NOT NULL,
    vendor    text NOT NULL,
    source    text NOT NULL CHECK (source IN ('purchase', 'import')),
    batch     text NOT NULL, -- empty: a purchase
    orders    bigint NOT NULL,
    vouchers  bigint NOT NULL,
    matched   bigint NOT NULL,
    drifted   bigint NOT NULL,
    unmatched bigint NOT NULL,
    PRIMARY KEY (day, vendor, source, batch),
    CHECK (matched + drifted + unmatched <= vouchers)
);

-- Differences between both sides. The unique key is a drift's identity: a later result that finds it again keeps its resolution.
CREATE TABLE drifts (
    drift_id    uuid PRIMARY KEY,
    vendor      text NOT NULL,
    day         date NOT NULL,
    reference   text NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('MISSING', 'UNKNOWN', 'DIFFERS', 'REPEATED')),
    occurrence  integer NOT NULL, -- from 1 per reference and kind; above 1 only if the vendor violates its protocol
    partner_id  uuid, -- of the order that the voucher was bought for; null if there is none
    order_id    uuid,
    voucher_id  uuid, -- the order's id of the voucher
    ours        jsonb,
    theirs      jsonb,
    detected_at timestamptz NOT NULL DEFAULT now(),
    resolution  text NOT NULL DEFAULT 'pending' CHECK (resolution IN ('pending', 'resolved', 'escalated')),
    reason      text,
    resolved_at timestamptz,
    UNIQUE (vendor, day, reference, kind, occurrence),
    FOREIGN KEY (vendor, day) REFERENCES reconciliations,
    CHECK ((partner_id IS NULL) = (order_id IS NULL)),
    CHECK ((resolution = 'pending') = (reason IS NULL AND resolved_at IS NULL)),
    CHECK ((kind = 'MISSING') = (theirs IS NULL)),
    CHECK ((kind = 'UNKNOWN') = (ours IS NULL))
);
CREATE INDEX drifts_of_partner ON drifts (partner_id, day) WHERE partner_id IS NOT NULL;
CREATE INDEX drifts_open ON drifts (vendor) WHERE resolution <> 'resolved';

-- Events and webhooks --------------------------------------------------------------------------------------------------------

-- A row holds the events of one commit about one order. Their numbers are number .. number + count - 1 of the partner, in commit
-- order and without gaps.
CREATE TABLE events (
    partner_id     uuid NOT NULL,
    number         bigint NOT NULL,
    count          integer NOT NULL CHECK (count > 0),
    order_id       uuid NOT NULL,
    first_sequence integer NOT NULL,
    body           text NOT NULL,
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (partner_id, number)
);
CREATE INDEX events_of_change ON events (partner_id, order_id) WHERE first_sequence > 1;

-- The counter of each partner's event numbers. Locked last and until the commit, which puts the numbers in commit order.
CREATE TABLE feeds (
    partner_id  uuid PRIMARY KEY,
    last_number bigint NOT NULL
) WITH (fillfactor = 50);

-- Webhook endpoints. The secret is encrypted instead of hashed, because signing needs it.
CREATE TABLE webhooks (
    partner_id      uuid NOT NULL,
    webhook_id      uuid NOT NULL,
    url             text NOT NULL,
    events          text[], -- null: all types, including future ones
    description     text,
    enabled         boolean NOT NULL,
    disabled_reason text CHECK (disabled_reason IN ('PARTNER', 'GONE')), -- by the partner, or because of a 410
    disabled_at     timestamptz,
    secret          bytea NOT NULL,
    previous_secret bytea, -- signs too, until previous_until
    previous_until  timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (partner_id, webhook_id),
    UNIQUE (partner_id, url),
    CHECK (enabled = (disabled_reason IS NULL) AND enabled = (disabled_at IS NULL)),
    CHECK ((previous_secret IS NULL) = (previous_until IS NULL))
);
CREATE UNIQUE INDEX webhooks_by_id ON webhooks (webhook_id); -- for operators

-- Progress of an endpoint: every event of its partner up to the cursor is delivered, not subscribed to, or has a row in
-- deliveries. The lease holder delivers and writes under the lease's number; a change of the endpoint takes the lease away.
CREATE TABLE webhook_progress (
    partner_id    uuid NOT NULL,
    webhook_id    uuid NOT NULL,
    cursor        bigint NOT NULL,
    failures      integer NOT NULL DEFAULT 0, -- in a row
    backoff_step  integer NOT NULL DEFAULT 0,
    failing_since timestamptz,
    due_at        timestamptz, -- the next attempt after a failure
    delivered     bigint NOT NULL DEFAULT 0, -- accepted attempts, in total
    refused       bigint NOT NULL DEFAULT 0, -- other attempts, in total
    lease         bigint NOT NULL DEFAULT 0,
    leased_by     text,
    incarnation   bigint,
    leased_until  timestamptz,
    -- Number of the last flush under this lease. A flush that is repeated because its outcome is unknown counts its attempts once.
    last_flush    bigint NOT NULL DEFAULT 0,
    -- A requested retry of everything that waits for the endpoint: events up to this number are attempted even while it fails.
    retry_to      bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (partner_id, webhook_id)
) WITH (fillfactor = 50); -- updated each second while events flow

-- Deliveries that failed, that wait behind a failed one of their order, or that are replayed. A delivery that succeeds at once
-- has no row.
CREATE TABLE deliveries (
    partner_id  uuid NOT NULL,
    webhook_id  uuid NOT NULL,
    number      bigint NOT NULL, -- the partner's number of the event
    delivery_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    state       text NOT NULL CHECK (state IN ('WAITING', 'DELIVERED', 'FAILED')),
    attempts    integer NOT NULL, -- failures since the start or the last replay
    next_at     timestamptz NOT NULL, -- infinity: waits for an earlier event of its order
    give_up_at  timestamptz NOT NULL,
    log         jsonb NOT NULL DEFAULT '[]', -- attempts: status, time, the first bytes of the response
    event_at    timestamptz NOT NULL, -- the event's commit
    updated_at  timestamptz NOT NULL DEFAULT now(),
    replays     integer NOT NULL DEFAULT 0, -- the result of an attempt ends only the replay that the attempt belongs to
    PRIMARY KEY (partner_id, webhook_id, number)
);
CREATE UNIQUE INDEX deliveries_by_id ON deliveries (delivery_id); -- for operators
CREATE INDEX deliveries_due ON deliveries (partner_id, webhook_id, next_at) WHERE state = 'WAITING';
CREATE INDEX deliveries_of_order ON deliveries (partner_id, webhook_id, order_id, number) WHERE state = 'WAITING';
CREATE INDEX deliveries_over ON deliveries (updated_at) WHERE state <> 'WAITING';
-- Rows that a failing endpoint attempts, those whose time ends first before the others.
CREATE INDEX deliveries_by_end ON deliveries (partner_id, webhook_id, give_up_at, number)
 WHERE state = 'WAITING' AND next_at < 'infinity';

-- Log of delivery attempts. The service creates a partition per day ahead of time and drops those past the retention period. There
-- is no default partition: a new partition would have to wait for a scan of it, so the writer creates a partition that is missing.
CREATE TABLE delivery_attempts (
    webhook_id uuid NOT NULL,
    attempt_id uuid NOT NULL, -- begins with the start of the attempt, to the microsecond
    partner_id uuid NOT NULL,
    number     bigint NOT NULL, -- the partner's number of the event
    event_at   timestamptz NOT NULL, -- the event's commit
    event      text NOT NULL,
    order_id   uuid NOT NULL,
    attempt    integer NOT NULL, -- from 1, since the first one or the last replay
    latency_ms integer NOT NULL,
    delivered  boolean NOT NULL,
    status     smallint,
    fault      text,
    answer     text NOT NULL, -- the first bytes of the response to a failed attempt
    retry_at   timestamptz,
    PRIMARY KEY (webhook_id, attempt_id),
    CHECK ((status IS NULL) <> (fault IS NULL))
) PARTITION BY RANGE (attempt_id);
CREATE INDEX delivery_attempts_failed ON delivery_attempts (webhook_id, attempt_id) WHERE NOT delivered;
CREATE INDEX delivery_attempts_of_order ON delivery_attempts (webhook_id, order_id, number);

-- Audit log ------------------------------------------------------------------------------------------------------------------

-- Actions of operators, of partners on their access, and each retrieval of codes (`codes.retrieve`, committed before the codes
-- are decrypted). Never codes, secrets or bodies.
CREATE TABLE audit_log (
    audit_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    operator   text NOT NULL,
    action     text NOT NULL,
    subject    text NOT NULL,
    before     jsonb,
    after      jsonb,
    trace_id   text,
    -- The partner that the entry concerns; null: none. The hash of audit checkpoints leaves it out (audit_entry_text_v1); `vouchsafe
    -- verify` compares it with the entry's object.
    partner_id uuid
);
CREATE INDEX audit_log_of_operator ON audit_log (operator, audit_id);
CREATE INDEX audit_log_of_action ON audit_log (action, audit_id);
CREATE INDEX audit_log_of_subject ON audit_log (subject, audit_id); -- also finds the retrievals of an order
CREATE INDEX audit_log_by_time ON audit_log (at, audit_id);
CREATE INDEX audit_log_of_partner ON audit_log (partner_id, audit_id) WHERE partner_id IS NOT NULL;
-- Changes that each node polls for, newest first, among many code retrievals and bookings.
CREATE INDEX audit_log_of_changes ON audit_log (audit_id) WHERE action ~ '^(partner|credential|product)\.';

-- Derives the partner of an entry from its actor and its object, to verify it. Plans must stay index probes, whatever the table sizes were at
-- plan time.
CREATE FUNCTION partner_of_audit_entry(p_entry audit_log) RETURNS uuid LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
    -- An entry about a change request concerns the partner of the object that is to be changed.
    v_object text := CASE WHEN p_entry.action LIKE 'request.%' THEN p_entry.after ->> 'object' ELSE p_entry.subject END;
    v_id     uuid;
BEGIN
    -- A partner acts on its own objects only.
    IF p_entry.operator ~ '^ptn_[0-9a-f]{32}$' THEN
        RETURN substr(p_entry.operator, 5)::uuid;
    END IF;
    IF p_entry.action = 'purchase.end' THEN
        RETURN (SELECT p.partner_id FROM purchases AS p WHERE p.purchase_id = p_entry.subject::uuid);
    END IF;
    IF v_object !~ '^(ptn|cred|wh|po|drf|ord)_[0-9a-f]{32}(/[A-Z]{3})?$' THEN
        RETURN NULL;
    END IF;
    v_id := substr(split_part(v_object, '_', 2), 1, 32)::uuid;
    CASE split_part(v_object, '_', 1)
        WHEN 'ptn' THEN
            RETURN v_id;
        WHEN 'cred' THEN
            -- Ended credentials are purged: their entries have the partner in the state, too.
            RETURN COALESCE((SELECT c.partner_id FROM credentials AS c WHERE c.credential_id = v_id),
                            substr(COALESCE(p_entry.after, p_entry.before) ->> 'partner_id', 5)::uuid);
        WHEN 'wh' THEN
            -- Partners register and remove endpoints: the entries of a removed one name its partner.
            RETURN COALESCE((SELECT w.partner_id FROM webhooks AS w WHERE w.webhook_id = v_id),
                            (SELECT substr(a.operator, 5)::uuid
                               FROM audit_log AS a
                              WHERE a.subject = v_object AND a.operator ~ '^ptn_[0-9a-f]{32}$'
                              LIMIT 1));
        WHEN 'po' THEN
            RETURN (SELECT y.partner_id FROM payouts AS y WHERE y.payout_id = v_id LIMIT 1);
        WHEN 'drf' THEN
            RETURN (SELECT d.partner_id FROM drifts AS d WHERE d.drift_id = v_id);
        ELSE
            -- Orders have no index by their id alone: one probe per partner, that of the entry first.
            RETURN (SELECT o.partner_id
                      FROM (SELECT p_entry.partner_id UNION ALL SELECT p.partner_id FROM partners AS p) AS p (partner_id)
                     CROSS JOIN LATERAL (
                            SELECT o.partner_id FROM orders AS o WHERE o.partner_id = p.partner_id AND o.order_id = v_id OFFSET 0
                           ) AS o
                     LIMIT 1);
    END CASE;
END
$$;

-- An entry has the time of its insertion, or that of its transaction, which lasts no longer than two minutes. Only the owner of the table may
-- write another one, so the service's role cannot backdate an entry.
CREATE FUNCTION stamp_audit_entry() RETURNS trigger LANGUAGE plpgsql
-- pg_temp comes last, so that a temporary table named pg_class deceives nobody.
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT pg_has_role(current_user, (SELECT c.relowner FROM pg_catalog.pg_class AS c WHERE c.oid = TG_RELID), 'MEMBER') THEN
        NEW.at := clock_timestamp();
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER audit_log_time BEFORE INSERT ON audit_log
    FOR EACH ROW WHEN (NEW.at NOT BETWEEN clock_timestamp() - interval '2 minutes' AND clock_timestamp())
    EXECUTE FUNCTION stamp_audit_entry();

-- Audit exports to HTTP endpoints: one row per endpoint, so that the nodes take turns and continue after a restart.
CREATE TABLE audit_exports (
    endpoint     text PRIMARY KEY,             -- HMAC of its URL under a key of the vault
    position     bigint NOT NULL DEFAULT 0,    -- number of the last checkpoint that the endpoint accepted
    leased_until timestamptz NOT NULL          -- until then, no other node exports
);

-- Hash chain over the audit log: a checkpoint is the hash of the previous checkpoint and of the entries it lists. Checkpoints are
-- written after the entries commit, so that writers of entries do not wait. A checkpoint lists its entries one by one, because
-- entries do not become visible in the order of their ids.
CREATE TABLE audit_checkpoints (
    number  bigint PRIMARY KEY CHECK (number > 0),
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    entries bigint[] NOT NULL CHECK (cardinality(entries) > 0),
    hash    bytea NOT NULL CHECK (length(hash) = 32),
    mac     bytea NOT NULL -- HMAC of number, time and hash under a key of the vault
);
CREATE INDEX audit_checkpoints_by_newest ON audit_checkpoints ((entries[cardinality(entries)]));

-- Append-only tables ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME;
END
$$;
CREATE TRIGGER audit_log_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_checkpoints_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_checkpoints
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER events_are_frozen BEFORE UPDATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
