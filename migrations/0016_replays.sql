-- What is written of an attempt names the replay that it was of: it never ends a later one, which is committed meanwhile.
ALTER TABLE deliveries ADD COLUMN replays integer NOT NULL DEFAULT 0; -- how often it was asked for again
