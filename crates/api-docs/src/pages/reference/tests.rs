//! Tests of the API reference page.

use serde_json::json;

use super::*;

fn sample() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Sample <API>", "version": "1.0", "description": "With `code`." },
        "tags": [{ "name": "orders", "description": "Placing them." }, { "name": "unused" }],
        "security": [{ "key": [], "secret": [] }],
        "paths": {
            "/orders": { "post": {
                "tags": ["orders"],
                "summary": "Place an order",
                "parameters": [{ "$ref": "#/components/parameters/Key" }],
                "requestBody": { "required": true, "content": { "application/json": {
                    "schema": { "$ref": "#/components/schemas/Request" },
                    "examples": { "one": { "summary": "One voucher", "value": { "items": [] } } },
                } } },
                "responses": {
                    "201": {
                        "description": "Delivered.",
                        "headers": { "Location": { "schema": { "type": "string" }, "description": "The order." } },
                        "content": { "application/json": {
                            "schema": { "$ref": "#/components/schemas/Order" },
                            "example": { "expiry": "<b>" },
                        } },
                    },
                    "202": {
                        "description": "Later.",
                        "headers": { "Location": { "schema": { "type": "string" } } },
                        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Order" } } },
                    },
                    "304": { "description": "Unchanged." },
                    "409": { "$ref": "#/components/responses/Refused" },
                },
            } },
            "/healthz": {
                "parameters": [{ "name": "verbose", "in": "query", "schema": { "type": "boolean", "default": false } }],
                "get": { "summary": "Alive", "security": [], "responses": { "200": { "description": "Yes." } } },
            },
        },
        "webhooks": { "order.sold": { "post": {
            "summary": "An order was sold",
            "requestBody": { "required": true, "content": { "application/json": {
                "schema": { "type": "object", "properties": { "data": { "$ref": "#/components/schemas/Base" } } },
                "examples": { "now": { "summary": "Sold <now>", "value": { "at": "<then>" } } },
            } } },
            "responses": { "204": { "description": "Received." } },
        } } },
        "components": {
            "parameters": { "Key": {
                "name": "Idempotency-Key", "in": "header", "required": true,
                "schema": { "type": "string", "minLength": 1, "maxLength": 255, "examples": ["po-1"] },
            } },
            "responses": { "Refused": { "description": "Refused.", "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/Error" },
                "examples": {
                    "SOLD_OUT": { "value": { "error": { "message": "All <gone>." } } },
                    "OTHER": { "value": { "error": { "message": "See `POST /orders`." } } },
                },
            } } } },
            "schemas": {
                "Request": { "type": "object", "required": ["items"], "properties": {
                    "items": { "type": "array", "minItems": 1, "maxItems": 100, "items": {
                        "type": "object", "required": ["quantity"],
                        "properties": { "quantity": { "type": "integer", "minimum": 1, "maximum": 1000 } },
                    } },
                    "fulfilment": { "type": "string", "enum": ["AUTO", "CACHE_ONLY"] },
                } },
                "Order": {
                    "description": "An <order>.",
                    "allOf": [{ "$ref": "#/components/schemas/Base" }, { "properties": {
                        "vouchers": { "type": "array", "items": { "$ref": "#/components/schemas/Voucher" } },
                        "reference": { "type": ["string", "null"], "description": "Yours." },
                        "best": { "oneOf": [
                            { "$ref": "#/components/schemas/Voucher", "description": "The best." }, { "type": "null" },
                        ] },
                    } }],
                },
                "Base": { "type": "object", "properties": {
                    "at": { "type": "string", "format": "date-time" },
                    "parent": { "$ref": "#/components/schemas/Order" },
                } },
                "Voucher": { "type": "object", "example": { "expiry": null },
                    "properties": { "expiry": { "oneOf": [{ "type": "string" }, { "type": "null" }] } } },
                "Error": { "type": "object", "properties": { "code": { "const": "X" } } },
                "Round": { "$ref": "#/components/schemas/Round" },
            },
            "securitySchemes": {
                "key": { "type": "apiKey", "in": "header", "name": "X-API-Key", "description": "Who." },
                "secret": { "type": "apiKey", "in": "header", "name": "X-API-Secret" },
            },
        },
    })
}

/// Address, content and examples of a page.
fn joined(page: Page) -> String {
    let examples = page.examples.unwrap_or_default();
    format!("[{}] {}{}\n", page.path, page.content.0, examples.0)
}

fn sample_pages() -> Vec<Page> {
    let mut links = code_links(&sample());
    links.insert("SOLD_OUT".to_owned(), "/docs/errors#sold_out".to_owned());
    pages(&sample(), &links)
}

#[test]
fn page_shows_every_part_of_the_document() {
    let page: String = sample_pages().into_iter().map(joined).collect();
    for expected in [
        "[reference] <h1 id=\"api-reference\">Sample &lt;API&gt;</h1>",
        "<p>With <code>code</code>.</p>",
        "<a href=\"/docs/reference/post-orders\">Place an order</a><p class=\"endpoint\"><span class=\"method post\">POST</span> \
         <code>/orders</code></p>",
        "<h2 id=\"tag-orders\"><a href=\"#tag-orders\">orders</a></h2><p>Placing them.</p>",
        "<h2 id=\"tag-other-routes\"><a href=\"#tag-other-routes\">Other routes</a></h2>",
        "[reference/get-healthz] <h1 id=\"get-healthz\">Alive</h1>",
        "<a href=\"/docs/reference#security-key\">key</a> and <a href=\"/docs/reference#security-secret\">secret</a>",
        "<h2 id=\"headers\"><a href=\"#headers\">Headers</a></h2><ul \
         class=\"entries\"><li><p><code>Idempotency-Key</code> <span class=\"soft\">string</span><span \
         class=\"required\"> required</span></p>",
        "1 to 255 characters; such as <code>po-1</code></p>",
        "<code>verbose</code> <span class=\"soft\">boolean</span></p><p class=\"soft\">default <code>false</code></p>",
        "<h2 id=\"query-parameters\">",
        "<code>items</code> <span class=\"soft\">array of object</span><span class=\"required\"> required</span></p>",
        "<p class=\"soft\">1 to 100 entries</p>",
        "<code>items[].quantity</code> <span class=\"soft\">integer</span><span class=\"required\"> required</span>",
        "one of <code>AUTO</code>, <code>CACHE_ONLY</code></p>",
        "<p class=\"soft\"><code>application/json</code> <a \
         href=\"/docs/reference/schemas/Request\">Request</a><span class=\"required\"> required</span></p>",
        "<span class=\"s\">&quot;Idempotency-Key: ",
        "<h2 id=\"response-201\"><a href=\"#response-201\">Response 201</a></h2><p>Delivered.</p>",
        "<p>Later.</p>\n<p class=\"soft\">The body has the fields of <a href=\"#response-201\">response 201</a>.</p>",
        "<code>Location</code>",
        "<code>vouchers</code> <span class=\"soft\">array of <a href=\"/docs/reference/schemas/Voucher\">Voucher</a></span>",
        "<span class=\"soft\">string or null</span></p><p>Yours.</p>",
        "string (date-time)",
        "<code>parent</code> <span class=\"soft\"><a href=\"/docs/reference/schemas/Order\">Order</a></span>",
        "<p class=\"soft\">Error bodies: <a href=\"/docs/reference/schemas/Error\">Error</a></p>",
        "<tr><td>304</td><td></td><td><p>Unchanged.</p>\n</td></tr>",
        "<tr><td>409</td><td><a \
         href=\"/docs/errors#sold_out\"><code>SOLD_<wbr>OUT</code></a></td><td><p>All \
         &lt;gone&gt;.</p>\n</td></tr>",
        "<tr><td>409</td><td><code>OTHER</code></td><td><p>See <a \
         href=\"/docs/reference/post-orders\"><code>POST /orders</code></a>.</p>",
        "<a href=\"/docs/reference/events/order.sold\">order.sold</a><p>An order was sold</p>",
        "[reference/events/order.sold] <h1 id=\"order-sold\">order.sold</h1>",
        "<h2 id=\"data\"><a href=\"#data\">Data</a></h2><p class=\"soft\"><a href=\"/docs/reference/schemas/Base\">Base</a></p>",
        "<thead><tr><th>Status</th><th>Meaning</th></tr></thead><tbody><tr><td>204</td><td><p>Received.</p>",
        "<h2>Sold &lt;now&gt;</h2>",
        "<span class=\"s\">&quot;&lt;then&gt;&quot;</span>",
        "<span class=\"p\">&quot;expiry&quot;</span>: <span class=\"s\">&quot;&lt;b&gt;&quot;</span>",
        "<a href=\"/docs/reference/schemas/Voucher\">Voucher</a> or null</span></p><p>The best.</p>",
        "[reference/schemas/Order] <h1 id=\"schema-Order\">Order</h1>",
        "<p>An &lt;order&gt;.</p>",
        "always <code>X</code>",
        "header X-API-Secret",
    ] {
        assert!(page.contains(expected), "{expected}\n\nis not in\n\n{page}");
    }
    for foreign in ["<b>", "<API>", "<order>", "<gone>", "<now>", "<then>", ">unused<"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert_eq!(
        page.matches("<code>Location</code>").count(),
        1,
        "a header is shown once"
    );
}

#[test]
fn empty_document_has_an_empty_overview() {
    let pages = pages(&json!({}), &CodeLinks::new());
    assert_eq!(pages.len(), 1);
    assert!(pages[0].content.0.contains("<h1"));
}
