<?php
// Places an order with the generated client and reads it back; a middleware signs.
use GuzzleHttp\Client;
use GuzzleHttp\HandlerStack;
use GuzzleHttp\Middleware;
use OpenAPI\Client\Api\OrdersApi;
use OpenAPI\Client\Configuration;
use OpenAPI\Client\Model\OrderRequest;
use OpenAPI\Client\Model\OrderRequestItem;
use Psr\Http\Message\RequestInterface;

require 'GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class): void {
    $file = 'php/lib/' . strtr(substr($class, strlen('OpenAPI\\Client\\')), '\\', '/') . '.php';
    if (str_starts_with($class, 'OpenAPI\\Client\\') && is_file($file)) {
        require $file;
    }
});

$stack = HandlerStack::create();
$stack->push(Middleware::mapRequest(function (RequestInterface $request): RequestInterface {
    [$secret, $timestamp] = [getenv('VOUCHSAFE_API_SECRET'), (string) time()];
    $message = $timestamp . $request->getMethod() . $request->getUri()->getPath() . $request->getBody();
    return $request
        ->withHeader('X-API-Key', getenv('VOUCHSAFE_API_KEY'))
        ->withHeader('X-API-Secret', $secret)
        ->withHeader('X-Timestamp', $timestamp)
        ->withHeader('X-Signature', "t=$timestamp,v1=" . hash_hmac('sha256', $message, $secret));
}));
$configuration = Configuration::getDefaultConfiguration()->setHost(getenv('PARTNER_URL'));
$orders = new OrdersApi(new Client(['handler' => $stack]), $configuration);

function check(bool $is, mixed $value): void
{
    if (!$is) {
        fwrite(STDERR, var_export($value, true) . "\n");
        exit(1);
    }
}

$item = new OrderRequestItem(['product_id' => 'sbx-instant', 'denomination' => 25, 'quantity' => 1]);
$placed = $orders->placeOrder(bin2hex(random_bytes(16)), new OrderRequest(['items' => [$item]]));
check($placed->getStatus() === 'DELIVERED', $placed);
$read = $orders->getOrder($placed->getOrderId());
check($read == $placed, $read);
$codes = $orders->getVoucherCodes($placed->getOrderId());
check(count($codes->getData()) === 1, $codes);
