<?php
// Signs a Vouchsafe request: prints the headers X-Timestamp and X-Signature. PHP 8 or later.
//
//   VOUCHSAFE_API_SECRET=… php sign.php METHOD PATH [TIMESTAMP] < body

/** The value of X-Signature. The path begins with /api/v1 and has no query; the body is the bytes that are sent. */
function sign(string $secret, string $timestamp, string $method, string $path, string $body): string
{
    return "t=$timestamp,v1=" . hash_hmac('sha256', $timestamp . $method . $path . $body, $secret);
}

// As a program; an include runs nothing.
if (realpath($_SERVER['SCRIPT_FILENAME']) === __FILE__) {
    $timestamp = $argv[3] ?? (string) time();
    $signature = sign(getenv('VOUCHSAFE_API_SECRET'), $timestamp, $argv[1], $argv[2], stream_get_contents(STDIN));
    echo "X-Timestamp: $timestamp\nX-Signature: $signature\n";
}
