-- expand
-- Where the events of a partner begin, if older ones are archived and removed. Written by `vouchsafe archive`, never by the service.
CREATE TABLE event_horizons (
    partner_id uuid PRIMARY KEY,
    removed_to bigint NOT NULL CHECK (removed_to > 0), -- events up to this number are removed
    -- By currency: the ledger entry of the last debit whose order's first event is removed. The debits of a wallet and the first events of
    -- their orders are in one order, so the first events of earlier debits are removed, too.
    debits     jsonb NOT NULL DEFAULT '{}'
);
