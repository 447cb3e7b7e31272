-- What counts against the daily caps of a partner, written only where one applies: cancellations, and totals of orders in minor units.
-- Rows are removed after a week.
CREATE TABLE partner_usage (
    partner_id uuid NOT NULL,
    day        date NOT NULL, -- UTC
    counter    text NOT NULL, -- the kind of cap, currency and credential, as far as it has them, joined by slashes
    value      bigint NOT NULL CHECK (value >= 0),
    PRIMARY KEY (partner_id, day, counter)
) WITH (fillfactor = 50);
