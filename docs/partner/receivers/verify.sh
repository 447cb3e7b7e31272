#!/usr/bin/env bash
# Verifies a Vouchsafe webhook delivery: exits with 0 if it is authentic and recent. Needs bash, openssl, base64 and od.
#
#   VOUCHSAFE_WEBHOOK_SECRET=whsec_… verify.sh WEBHOOK_ID WEBHOOK_TIMESTAMP WEBHOOK_SIGNATURE [NOW] < body
set -euo pipefail
id=$1 timestamp=$2 signatures=$3 now=${4:-$(date +%s)}
age=$((now - timestamp))
((${age#-} <= 300)) || { echo "the timestamp is not within 300 seconds of now" >&2; exit 1; }
# Other users of this machine can see the key in the process list: on a shared machine use another language.
key=$(printf %s "${VOUCHSAFE_WEBHOOK_SECRET#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \n')
signature=v1,$({ printf '%s.%s.' "$id" "$timestamp"; cat; } |
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)
[[ " $signatures " == *" $signature "* ]] || { echo "the signature is wrong" >&2; exit 1; }
