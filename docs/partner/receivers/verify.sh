#!/usr/bin/env bash
# Verifies a delivery of Vouchsafe: ends with 0 if it is genuine and fresh. Needs bash, openssl, base64 and od.
#
#   VOUCHSAFE_WEBHOOK_SECRET=whsec_… verify.sh WEBHOOK_ID WEBHOOK_TIMESTAMP WEBHOOK_SIGNATURE [NOW] < body
set -euo pipefail
id=$1 timestamp=$2 signatures=$3 now=${4:-$(date +%s)}
age=$((now - timestamp))
((${age#-} <= 300)) || { echo "too old, or from the future" >&2; exit 1; }
# The key is seen by who lists this machine's processes: on a shared machine take another language.
key=$(printf %s "${VOUCHSAFE_WEBHOOK_SECRET#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \n')
signature=v1,$({ printf '%s.%s.' "$id" "$timestamp"; cat; } |
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)
[[ " $signatures " == *" $signature "* ]] || { echo "not genuine" >&2; exit 1; }
