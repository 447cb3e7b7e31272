import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.MessageDigest;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Verifies a Vouchsafe webhook delivery: exits with 0 if it is authentic and recent. Java 17 or later.
 *
 * <p>VOUCHSAFE_WEBHOOK_SECRET=whsec_… java Verify.java WEBHOOK_ID WEBHOOK_TIMESTAMP WEBHOOK_SIGNATURE [NOW] &lt; body
 */
public class Verify {
    /** Returns whether one of the signatures is valid. The body is the raw bytes. */
    static boolean verify(String secret, String id, String timestamp, String signatures, byte[] body, long now)
            throws Exception {
        byte[] key = Base64.getDecoder().decode(secret.replaceFirst("^whsec_", ""));
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        mac.update((id + "." + timestamp + ".").getBytes(UTF_8));
        String expected = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));
        boolean authentic = false;
        for (String one : signatures.split(" ")) {
            authentic |= MessageDigest.isEqual(one.getBytes(UTF_8), expected.getBytes(UTF_8));
        }
        return authentic && Math.abs(now - Long.parseLong(timestamp)) <= 300;
    }

    public static void main(String[] args) throws Exception {
        long now = args.length > 3 ? Long.parseLong(args[3]) : System.currentTimeMillis() / 1000;
        String secret = System.getenv("VOUCHSAFE_WEBHOOK_SECRET");
        if (!verify(secret, args[0], args[1], args[2], System.in.readAllBytes(), now)) {
            System.err.println("the signature is wrong or the timestamp is not within 300 seconds of now");
            System.exit(1);
        }
    }
}
