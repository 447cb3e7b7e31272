-- expand

-- Bulk jobs: one action of an operator on many objects. The counts are those of the results of its objects.
CREATE TABLE bulk_jobs (
    job_id     uuid PRIMARY KEY,
    action     text NOT NULL,
    reason     text,
    operator   text NOT NULL,
    objects    int NOT NULL,
    done       int NOT NULL DEFAULT 0,
    requested  int NOT NULL DEFAULT 0,
    refused    int NOT NULL DEFAULT 0,
    failed     int NOT NULL DEFAULT 0,
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz, -- of the last result
    runs_until timestamptz NOT NULL -- without a further result it is interrupted
);

CREATE TABLE bulk_items (
    job_id     uuid NOT NULL REFERENCES bulk_jobs ON DELETE CASCADE,
    position   int NOT NULL,
    object_id  text NOT NULL,
    result     text NOT NULL DEFAULT 'WAITING',
    error_code text,
    message    text,
    request_id uuid,
    ended_at   timestamptz,
    PRIMARY KEY (job_id, position)
);
