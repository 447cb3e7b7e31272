-- A credential never has more scopes than the one that it came from by rotation. Version 0.2.0, which still runs during an upgrade or
-- after a return to it, does not know the column and would leave it null: everything. Null is also right where the predecessor has null.
CREATE FUNCTION set_scopes_of_successor() RETURNS trigger LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    NEW.scopes := (SELECT c.scopes FROM credentials AS c WHERE c.credential_id = NEW.rotated_from);
    RETURN NEW;
END
$$;
CREATE TRIGGER credentials_scopes_of_successor BEFORE INSERT ON credentials
    FOR EACH ROW WHEN (NEW.rotated_from IS NOT NULL AND NEW.scopes IS NULL)
    EXECUTE FUNCTION set_scopes_of_successor();
