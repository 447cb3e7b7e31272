import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Signs a Vouchsafe request: prints the headers X-Timestamp and X-Signature. Java 17 or later.
 *
 * <p>VOUCHSAFE_API_SECRET=… java Sign.java METHOD PATH [TIMESTAMP] &lt; body
 */
public class Sign {
    /** The value of X-Signature. The path begins with /api/v1 and has no query; the body is the bytes that are sent. */
    static String sign(String secret, String timestamp, String method, String path, byte[] body) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA256"));
        mac.update((timestamp + method + path).getBytes(UTF_8));
        return "t=" + timestamp + ",v1=" + HexFormat.of().formatHex(mac.doFinal(body));
    }

    public static void main(String[] args) throws Exception {
        String timestamp = args.length > 2 ? args[2] : String.valueOf(System.currentTimeMillis() / 1000);
        String secret = System.getenv("VOUCHSAFE_API_SECRET");
        String signature = sign(secret, timestamp, args[0], args[1], System.in.readAllBytes());
        System.out.println("X-Timestamp: " + timestamp + "\nX-Signature: " + signature);
    }
}
