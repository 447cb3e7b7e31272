// Verifies a Vouchsafe webhook delivery: exits with 0 if it is authentic and recent. Go 1.19 or later, nothing else.
//
//	VOUCHSAFE_WEBHOOK_SECRET=whsec_… go run verify.go WEBHOOK_ID WEBHOOK_TIMESTAMP WEBHOOK_SIGNATURE [NOW] < body
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// verify reports whether one of the signatures is valid. The body is the raw bytes.
func verify(secret, id, timestamp, signatures string, body []byte, now int64) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	sent, notNumber := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || notNumber != nil || now-sent > 300 || sent-now > 300 {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	authentic := false
	for _, one := range strings.Split(signatures, " ") {
		authentic = hmac.Equal([]byte(one), []byte(expected)) || authentic
	}
	return authentic
}

func main() {
	now := time.Now().Unix()
	if len(os.Args) > 4 {
		now, _ = strconv.ParseInt(os.Args[4], 10, 64)
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil || !verify(os.Getenv("VOUCHSAFE_WEBHOOK_SECRET"), os.Args[1], os.Args[2], os.Args[3], body, now) {
		os.Stderr.WriteString("the signature is wrong or the timestamp is not within 300 seconds of now\n")
		os.Exit(1)
	}
}
