-- Whether codes of the product that differ only in case are one code. The products of a brand agree, and it stays as it is once one of
-- them has stock: the blind indexes contain it. A node of an earlier version compares exactly.
ALTER TABLE products ADD COLUMN code_case text NOT NULL DEFAULT 'exact'; -- exact, ignored
