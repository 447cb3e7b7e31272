-- Where partners are told of their events. The secret is sealed, since it must be recovered to sign.
CREATE TABLE webhooks (
    partner_id      uuid NOT NULL,
    webhook_id      uuid NOT NULL,
    url             text NOT NULL,
    events          text[], -- null: all of them, those too that may come later
    description     text,
    enabled         boolean NOT NULL,
    disabled_reason text CHECK (disabled_reason IN ('PARTNER', 'GONE')), -- by whom, or because of a 410
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
CREATE UNIQUE INDEX webhooks_by_id ON webhooks (webhook_id); -- what operators name

-- How far an endpoint is: every event of its partner up to the cursor is taken, not asked for, or has a row in deliveries.
-- Whoever has the lease delivers, and writes under its number; a change of the endpoint takes the lease away.
-- Locks: webhooks, webhook_progress, deliveries.
CREATE TABLE webhook_progress (
    partner_id    uuid NOT NULL,
    webhook_id    uuid NOT NULL,
    cursor        bigint NOT NULL,
    failures      integer NOT NULL DEFAULT 0, -- in a row
    step          integer NOT NULL DEFAULT 0, -- how far the gaps between attempts have grown
    failing_since timestamptz,
    due_at        timestamptz, -- the next attempt of what failed
    delivered     bigint NOT NULL DEFAULT 0, -- attempts that were taken, ever
    refused       bigint NOT NULL DEFAULT 0, -- attempts that were not
    lease         bigint NOT NULL DEFAULT 0,
    leased_by     text,
    incarnation   bigint,
    leased_until  timestamptz,
    PRIMARY KEY (partner_id, webhook_id)
) WITH (fillfactor = 50); -- updated each second while events flow

-- Deliveries that failed, that wait behind one of their order that failed, or that are replayed. What is taken at once has
-- none.
CREATE TABLE deliveries (
    partner_id  uuid NOT NULL,
    webhook_id  uuid NOT NULL,
    number      bigint NOT NULL, -- the partner's number of the event
    delivery_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    state       text NOT NULL CHECK (state IN ('WAITING', 'DELIVERED', 'FAILED')),
    attempts    integer NOT NULL, -- that failed, since it was begun or replayed
    next_at     timestamptz NOT NULL, -- infinity: waits for an earlier one of its order
    ends_at     timestamptz NOT NULL, -- the last attempt
    log         jsonb NOT NULL DEFAULT '[]', -- attempts: status, time, the first bytes of the answer
    event_at    timestamptz NOT NULL, -- the event's commit
    updated_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (partner_id, webhook_id, number)
);
CREATE UNIQUE INDEX deliveries_by_id ON deliveries (delivery_id); -- what operators name, and list
CREATE INDEX deliveries_due ON deliveries (partner_id, webhook_id, next_at) WHERE state = 'WAITING';
CREATE INDEX deliveries_of_order ON deliveries (partner_id, webhook_id, order_id, number) WHERE state = 'WAITING';
CREATE INDEX deliveries_over ON deliveries (updated_at) WHERE state <> 'WAITING';
