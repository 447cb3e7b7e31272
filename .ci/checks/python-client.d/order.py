"""Imports every module of the generated clients, places an order with that of partners and lists partners with that of operators.

Prints nothing and exits with 0 on success.
"""

import importlib
import os
import pkgutil
import uuid

import httpx

from signing import Credentials


class Signature(httpx.Auth):
    """Signs each request; the only addition to the generated client."""

    requires_request_body = True

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials

    def auth_flow(self, request: httpx.Request):
        headers = self.credentials.headers(request.method, request.url.path, request.content)
        request.headers.update(headers)
        yield request


def import_all(name: str) -> None:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        importlib.import_module(module.name)


def list_partners() -> None:
    from vouchsafe_operator import AuthenticatedClient
    from vouchsafe_operator.api.partners import list_partners

    client = AuthenticatedClient(base_url=os.environ["ADMIN_URL"], token=os.environ["OPERATOR_TOKEN"])
    assert list_partners.sync(client=client).data, "the sandbox has a partner"


def place_order_and_read_it() -> None:
    from vouchsafe_partner import Client
    from vouchsafe_partner.api.catalogue import get_product, list_products
    from vouchsafe_partner.api.money import list_wallets
    from vouchsafe_partner.api.orders import get_order, get_voucher_codes, place_order
    from vouchsafe_partner.models import ErrorResponse, Order, OrderRequest, OrderRequestItem, OrderStatus

    keys = [str(uuid.uuid4()) for _ in range(2)]
    auth = Signature(Credentials.from_environment())
    client = Client(base_url=os.environ["PARTNER_URL"], httpx_args={"auth": auth}, timeout=httpx.Timeout(20))

    products = list_products.sync(client=client, currency="USD", limit=100)
    assert "sbx-instant" in [product.product_id for product in products.data], products
    product = get_product.sync("sbx-instant", client=client)
    assert product.stock[0].availability == "IN_STOCK", product

    item = OrderRequestItem(product_id=product.product_id, denomination=product.denominations[0], quantity=2)
    request = OrderRequest(items=[item], reference="generated")
    placed = place_order.sync_detailed(client=client, body=request, idempotency_key=keys[0])
    assert placed.status_code == 201 and isinstance(placed.parsed, Order), placed
    again = place_order.sync_detailed(client=client, body=request, idempotency_key=keys[0])
    assert again.content == placed.content, again
    assert again.headers["Idempotent-Replayed"] == "true", again

    order = get_order.sync(placed.parsed.order_id, client=client)
    assert order == placed.parsed, (order, placed.parsed)
    assert (order.status, order.reference, order.total_amount) == (OrderStatus.DELIVERED, "generated", 50), order
    codes = get_voucher_codes.sync(order.order_id, client=client)
    expected = [voucher.voucher_id for voucher in order.vouchers]
    assert [voucher.voucher_id for voucher in codes.data] == expected, "the codes belong to the order's vouchers"
    assert all(voucher.credentials[0].type_ == "code" for voucher in codes.data)

    [dollars] = [wallet for wallet in list_wallets.sync(client=client).data if wallet.currency == "USD"]
    costly = OrderRequestItem(product_id="sbx-instant", denomination=25, quantity=1000)
    assert dollars.balance > 0, dollars
    refused = place_order.sync(client=client, body=OrderRequest(items=[costly] * 2), idempotency_key=keys[1])
    assert isinstance(refused, ErrorResponse) and refused.error.code == "VALIDATION_FAILED", refused
    assert refused.error.details[0].field == "items" and not refused.error.retryable, refused


if __name__ == "__main__":
    import_all("vouchsafe_partner")
    import_all("vouchsafe_operator")
    place_order_and_read_it()
    list_partners()
