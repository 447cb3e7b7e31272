-- The functions of the program that started last, by the digest of their text. Their texts are in functions/.
CREATE TABLE functions (
    name   text PRIMARY KEY,
    digest bytea NOT NULL
);
