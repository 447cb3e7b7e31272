-- The wrapping keys that a node has loaded, and the incarnation that reported them: version 0.2.0 takes an incarnation without.
ALTER TABLE nodes
    ADD COLUMN wrapping_keys    text[],
    ADD COLUMN wrapping_keys_of bigint;
