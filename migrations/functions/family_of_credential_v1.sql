-- The first of the credentials that led to this one by rotation. Version 0.2.0 leaves it out of the rows that it writes; the next
-- ancestor that has it, or else the oldest one, tells.
CREATE OR REPLACE FUNCTION family_of_credential_v1(p_credential_id uuid)
RETURNS uuid
LANGUAGE sql STABLE
AS $$
    WITH RECURSIVE ancestors AS (
         SELECT c.credential_id, c.rotated_from, c.family_id
           FROM credentials AS c
          WHERE c.credential_id = p_credential_id
         UNION
         SELECT c.credential_id, c.rotated_from, c.family_id
           FROM ancestors AS a
           JOIN credentials AS c ON c.credential_id = a.rotated_from
          WHERE a.family_id IS NULL)
    SELECT COALESCE(a.family_id, a.credential_id)
      FROM ancestors AS a
     WHERE a.family_id IS NOT NULL OR a.rotated_from IS NULL
$$;
