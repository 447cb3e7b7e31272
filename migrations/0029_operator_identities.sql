-- Which account belongs to whom at an identity provider. A subject is never given to another person, an e-mail address is.
CREATE TABLE operator_identities (
    issuer   text NOT NULL,
    subject  text NOT NULL,
    operator text NOT NULL UNIQUE REFERENCES operators,
    PRIMARY KEY (issuer, subject)
);
