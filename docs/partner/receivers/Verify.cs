// Verifies a Vouchsafe webhook delivery: exits with 0 if it is authentic and recent. .NET 8 or later, nothing else.
//
//   VOUCHSAFE_WEBHOOK_SECRET=whsec_… dotnet run -- WEBHOOK_ID WEBHOOK_TIMESTAMP WEBHOOK_SIGNATURE [NOW] < body
using System.Security.Cryptography;
using System.Text;

public static class Receiver
{
    /// <summary>Returns whether one of the signatures is valid. The body is the raw bytes.</summary>
    public static bool Verify(string secret, string id, string timestamp, string signatures, byte[] body, long now)
    {
        string text = secret.StartsWith("whsec_", StringComparison.Ordinal) ? secret["whsec_".Length..] : secret;
        byte[] message = [.. Encoding.UTF8.GetBytes($"{id}.{timestamp}."), .. body];
        byte[] hash = HMACSHA256.HashData(Convert.FromBase64String(text), message);
        byte[] expected = Encoding.UTF8.GetBytes("v1," + Convert.ToBase64String(hash));
        bool authentic = false;
        foreach (string one in signatures.Split(' '))
        {
            authentic |= CryptographicOperations.FixedTimeEquals(Encoding.UTF8.GetBytes(one), expected);
        }
        return authentic && long.TryParse(timestamp, out long sent) && Math.Abs(now - sent) <= 300;
    }

    public static int Main(string[] args)
    {
        long now = args.Length > 3 ? long.Parse(args[3]) : DateTimeOffset.UtcNow.ToUnixTimeSeconds();
        using var body = new MemoryStream();
        Console.OpenStandardInput().CopyTo(body);
        string secret = Environment.GetEnvironmentVariable("VOUCHSAFE_WEBHOOK_SECRET")!;
        if (Verify(secret, args[0], args[1], args[2], body.ToArray(), now))
        {
            return 0;
        }
        Console.Error.WriteLine("the signature is wrong or the timestamp is not within 300 seconds of now");
        return 1;
    }
}
