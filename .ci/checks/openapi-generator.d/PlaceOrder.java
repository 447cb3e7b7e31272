import java.net.http.HttpRequest;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.OrdersApi;
import org.openapitools.client.model.AmountText;
import org.openapitools.client.model.Order;
import org.openapitools.client.model.OrderRequest;
import org.openapitools.client.model.OrderRequestItem;
import org.openapitools.client.model.OrderStatus;

import static java.nio.charset.StandardCharsets.UTF_8;

/** Places an order with the generated client and reads it back; an interceptor signs. */
public class PlaceOrder {
    /** The bytes of the next request: an interceptor does not see its body. */
    private static byte[] body = {};

    private static void sign(HttpRequest.Builder builder) {
        HttpRequest request = builder.copy().build();
        String secret = System.getenv("VOUCHSAFE_API_SECRET");
        String timestamp = String.valueOf(System.currentTimeMillis() / 1000);
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA256"));
            mac.update((timestamp + request.method() + request.uri().getPath()).getBytes(UTF_8));
            String signature = HexFormat.of().formatHex(mac.doFinal(request.method().equals("POST") ? body : new byte[0]));
            builder.setHeader("X-API-Key", System.getenv("VOUCHSAFE_API_KEY")).setHeader("X-API-Secret", secret)
                .setHeader("X-Timestamp", timestamp).setHeader("X-Signature", "t=" + timestamp + ",v1=" + signature);
        } catch (java.security.GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void require(boolean is, Object value) {
        if (!is) throw new IllegalStateException(String.valueOf(value));
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("PARTNER_URL"));
        client.setRequestInterceptor(PlaceOrder::sign);
        OrdersApi orders = new OrdersApi(client);

        AmountText denomination = new AmountText("25.00");
        OrderRequestItem item = new OrderRequestItem().productId("sbx-instant").denomination(denomination).quantity(1);
        OrderRequest request = new OrderRequest().items(List.of(item));
        body = client.getObjectMapper().writeValueAsBytes(request);
        Order placed = orders.placeOrder(UUID.randomUUID().toString(), request, null);
        require(placed.getStatus() == OrderStatus.DELIVERED, placed);
        require(orders.getOrder(placed.getOrderId(), null, null).equals(placed), placed);
        require(orders.getVoucherCodes(placed.getOrderId(), null).getData().size() == 1, placed);
    }
}
