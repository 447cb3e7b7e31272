// Places an order with the generated client and reads it back; the transport signs.
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"time"

	"vouchsafe"
)

type signer struct{}

func (signer) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		body, _ = io.ReadAll(request.Body)
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	secret, timestamp := os.Getenv("VOUCHSAFE_API_SECRET"), strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + request.Method + request.URL.Path + string(body)))
	request.Header.Set("X-API-Key", os.Getenv("VOUCHSAFE_API_KEY"))
	request.Header.Set("X-API-Secret", secret)
	request.Header.Set("X-Timestamp", timestamp)
	request.Header.Set("X-Signature", fmt.Sprintf("t=%s,v1=%x", timestamp, mac.Sum(nil)))
	return http.DefaultTransport.RoundTrip(request)
}

func require(is bool, format string, values ...any) {
	if !is {
		panic(fmt.Sprintf(format, values...))
	}
}

func main() {
	configuration := vouchsafe.NewConfiguration()
	configuration.Servers = vouchsafe.ServerConfigurations{{URL: os.Getenv("PARTNER_URL")}}
	configuration.HTTPClient = &http.Client{Transport: signer{}}
	client, ctx := vouchsafe.NewAPIClient(configuration), context.Background()

	denomination := float32(25)
	item := vouchsafe.NewOrderRequestItem("sbx-instant", vouchsafe.AmountText{Float32: &denomination}, 1)
	key := make([]byte, 16)
	_, err := rand.Read(key)
	require(err == nil, "%v", err)
	request := vouchsafe.NewOrderRequest([]vouchsafe.OrderRequestItem{*item})
	placed, _, err := client.OrdersAPI.PlaceOrder(ctx).IdempotencyKey(hex.EncodeToString(key)).OrderRequest(*request).Execute()
	require(err == nil, "%v", err)
	require(placed.Status == vouchsafe.ORDERSTATUS_DELIVERED, "%v", placed)
	read, _, err := client.OrdersAPI.GetOrder(ctx, placed.OrderId).Execute()
	require(err == nil && reflect.DeepEqual(read, placed), "%v %v", err, read)
	codes, _, err := client.OrdersAPI.GetVoucherCodes(ctx, placed.OrderId).Execute()
	require(err == nil && len(codes.Data) == 1, "%v %v", err, codes)
}
