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
                    "409": { "$ref": "#/components/responses/Refused" },
                },
            } },
            "/healthz": {
                "parameters": [{ "name": "verbose", "in": "query", "schema": { "type": "boolean", "default": false } }],
                "get": { "summary": "Alive", "security": [], "responses": { "200": { "description": "Yes." } } },
            },
        },
        "components": {
            "parameters": { "Key": {
                "name": "Idempotency-Key", "in": "header", "required": true,
                "schema": { "type": "string", "minLength": 1, "maxLength": 255, "examples": ["po-1"] },
            } },
            "responses": { "Refused": { "description": "`SOLD_OUT`: all <gone>.", "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/Error" },
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

#[test]
fn page_shows_every_part_of_the_document() {
    let page: String = pages(&sample()).into_iter().map(joined).collect();
    for expected in [
        "[reference] <h1 id=\"api-reference\">Sample &lt;API&gt;</h1>",
        "<p>With <code>code</code>.</p>",
        "<a href=\"/docs/reference/post-orders\">Place an order</a><p class=\"endpoint\"><span class=\"method post\">POST</span> \
         <code>/orders</code></p>",
        "<h2 id=\"tag-orders\">orders</h2><p>Placing them.</p>",
        "<h2 id=\"tag-other-routes\">Other routes</h2>",
        "[reference/get-healthz] <h1 id=\"get-healthz\">Alive</h1>",
        "<a href=\"/docs/reference#security-key\">key</a> and <a href=\"/docs/reference#security-secret\">secret</a>",
        "<h2 id=\"headers\">Headers</h2><ul class=\"entries\"><li><p><code>Idempotency-Key</code> <span class=\"soft\">string</span>\
         <span class=\"required\"> required</span></p>",
        "1 to 255 characters; such as <code>po-1</code></p>",
        "<code>verbose</code> <span class=\"soft\">boolean</span></p><p class=\"soft\">default <code>false</code></p>",
        "<h2 id=\"query-parameters\">",
        "<code>items</code> <span class=\"soft\">array of object</span><span class=\"required\"> required</span></p>",
        "<p class=\"soft\">1 to 100 entries</p>",
        "<code>items[].quantity</code> <span class=\"soft\">integer</span><span class=\"required\"> required</span>",
        "one of <code>AUTO</code>, <code>CACHE_ONLY</code></p>",
        "<h2 id=\"body\">Body<span class=\"required\"> required</span></h2>",
        "<span class=\"s\">&quot;Idempotency-Key: ",
        "<h2 id=\"response-201\">Response 201</h2><p>Delivered.</p>",
        "<code>Location</code>",
        "<code>vouchers</code> <span class=\"soft\">array of <a href=\"/docs/reference/schemas/Voucher\">Voucher</a></span>",
        "<span class=\"soft\">string or null</span></p><p>Yours.</p>",
        "string (date-time)",
        "<code>parent</code> <span class=\"soft\"><a href=\"/docs/reference/schemas/Order\">Order</a></span>",
        "<code>409</code> <span class=\"soft\"><a href=\"/docs/reference/schemas/Error\">Error</a></span></p><p><code>SOLD_OUT</code>: all \
         &lt;gone&gt;.</p>",
        "<span class=\"p\">&quot;expiry&quot;</span>: <span class=\"s\">&quot;&lt;b&gt;&quot;</span>",
        "<a href=\"/docs/reference/schemas/Voucher\">Voucher</a> or null</span></p><p>The best.</p>",
        "[reference/schemas/Order] <h1 id=\"schema-Order\">Order</h1>",
        "<p>An &lt;order&gt;.</p>",
        "always <code>X</code>",
        "header X-API-Secret",
    ] {
        assert!(page.contains(expected), "{expected}\n\nis not in\n\n{page}");
    }
    for foreign in ["<b>", "<API>", "<order>", "<gone>", ">unused<"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn empty_document_has_an_empty_overview() {
    let pages = pages(&json!({}));
    assert_eq!(pages.len(), 1);
    assert!(pages[0].content.0.contains("<h1"));
}
