// Signs a Vouchsafe request: prints the headers X-Timestamp and X-Signature. Go 1.19 or later.
//
//	VOUCHSAFE_API_SECRET=… go run sign.go METHOD PATH [TIMESTAMP] < body
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// sign returns the value of X-Signature. The path begins with /api/v1 and has no query; the body is the bytes that are sent.
func sign(secret, timestamp, method, path string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + method + path))
	mac.Write(body)
	return fmt.Sprintf("t=%s,v1=%x", timestamp, mac.Sum(nil))
}

func main() {
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	if len(os.Args) > 3 {
		timestamp = os.Args[3]
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	signature := sign(os.Getenv("VOUCHSAFE_API_SECRET"), timestamp, os.Args[1], os.Args[2], body)
	fmt.Printf("X-Timestamp: %s\nX-Signature: %s\n", timestamp, signature)
}
