// Signs a Vouchsafe request: prints the headers X-Timestamp and X-Signature. .NET 8 or later.
//
//   VOUCHSAFE_API_SECRET=… dotnet run -- METHOD PATH [TIMESTAMP] < body
using System.Security.Cryptography;
using System.Text;

public static class Signer
{
    /// <summary>The value of X-Signature. The path begins with /api/v1 and has no query; the body is the bytes that are sent.</summary>
    public static string Sign(string secret, string timestamp, string method, string path, byte[] body)
    {
        byte[] message = [.. Encoding.UTF8.GetBytes(timestamp + method + path), .. body];
        byte[] hash = HMACSHA256.HashData(Encoding.UTF8.GetBytes(secret), message);
        return $"t={timestamp},v1={Convert.ToHexString(hash).ToLowerInvariant()}";
    }

    public static void Main(string[] args)
    {
        string timestamp = args.Length > 2 ? args[2] : DateTimeOffset.UtcNow.ToUnixTimeSeconds().ToString();
        using var body = new MemoryStream();
        Console.OpenStandardInput().CopyTo(body);
        string secret = Environment.GetEnvironmentVariable("VOUCHSAFE_API_SECRET")!;
        string signature = Sign(secret, timestamp, args[0], args[1], body.ToArray());
        Console.Write($"X-Timestamp: {timestamp}\nX-Signature: {signature}\n");
    }
}
