<?php
// Verifies a Vouchsafe webhook delivery: exits with 0 if it is authentic and recent. PHP 8 or later, nothing else.
//
//   VOUCHSAFE_WEBHOOK_SECRET=whsec_… php verify.php WEBHOOK_ID WEBHOOK_TIMESTAMP WEBHOOK_SIGNATURE [NOW] < body

/** Returns whether one of the signatures is valid. The body is the raw bytes, as of file_get_contents('php://input'). */
function verify(string $secret, string $id, string $timestamp, string $signatures, string $body, int $now): bool
{
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret));
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    $authentic = false;
    foreach (explode(' ', $signatures) as $one) {
        $authentic = hash_equals($expected, $one) || $authentic;
    }
    return $authentic && abs($now - (int) $timestamp) <= 300;
}

// As a program; an include runs nothing.
if (realpath($_SERVER['SCRIPT_FILENAME']) === __FILE__) {
    $now = (int) ($argv[4] ?? time());
    $body = stream_get_contents(STDIN);
    if (!verify(getenv('VOUCHSAFE_WEBHOOK_SECRET'), $argv[1], $argv[2], $argv[3], $body, $now)) {
        fwrite(STDERR, "the signature is wrong or the timestamp is not within 300 seconds of now\n");
        exit(1);
    }
}
