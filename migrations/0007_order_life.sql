-- A voucher that came back from an order: its row stays sold, its code has another one, and the order shows it no more.
ALTER TABLE allocations ADD COLUMN returned_at timestamptz;

-- Money on its way out. It left the wallet when the payout was accepted.
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
CREATE INDEX payouts_by_id ON payouts (payout_id); -- what operators name, and list
