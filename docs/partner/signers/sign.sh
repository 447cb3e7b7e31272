#!/bin/sh
# Signs a Vouchsafe request: prints the headers X-Timestamp and X-Signature.
#
#   VOUCHSAFE_API_SECRET=… sign.sh METHOD PATH [TIMESTAMP] < body
#
# The path begins with /api/v1 and has no query. openssl receives the key as an argument, which other users of the
# same machine can see: on a shared machine use the signer of another language.
set -eu

timestamp=${3:-$(date +%s)}
signature=$({
    printf '%s' "$timestamp$1$2"
    cat
} | openssl dgst -sha256 -hmac "${VOUCHSAFE_API_SECRET:?}" -r | cut -d ' ' -f 1)
printf 'X-Timestamp: %s\nX-Signature: t=%s,v1=%s\n' "$timestamp" "$timestamp" "$signature"
