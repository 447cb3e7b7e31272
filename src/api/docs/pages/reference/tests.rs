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

#[test]
fn page_shows_every_part_of_the_document() {
    let page = page(&sample()).into_string();
    for expected in [
        "<h1 id=\"api-reference\">Sample &lt;API&gt;</h1>",
        "<p>With <code>code</code>.</p>",
        "<a href=\"#post-orders\"><code><span class=\"method\">POST</span> /orders</code></a> Place an order",
        "<h2 id=\"tag-orders\">orders</h2><p>Placing them.</p>",
        "<h2 id=\"tag-other-routes\">Other routes</h2>",
        "<h3 id=\"get-healthz\">",
        "<a href=\"#security-key\">key</a> and <a href=\"#security-secret\">secret</a>",
        "<code>Idempotency-Key</code><span class=\"required\"> required</span></td><td>header</td>",
        "1 to 255 characters; such as <code>po-1</code></p>",
        "<td>boolean</td><td><p class=\"soft\">default <code>false</code></p></td>",
        "<code>verbose</code></td><td>query</td>",
        "<td><code>items</code><span class=\"required\"> required</span></td><td>array of object</td>",
        "<p class=\"soft\">1 to 100 entries</p>",
        "<td><code>items[].quantity</code><span class=\"required\"> required</span></td><td>integer</td>",
        "one of <code>AUTO</code>, <code>CACHE_ONLY</code></p>",
        "<p class=\"soft\">One voucher</p><pre><code>{\n  &quot;items&quot;: []\n}</code></pre>",
        "<h4>Response 201</h4><p>Delivered.</p>",
        "<td><code>Location</code></td>",
        "<td><code>vouchers</code></td><td>array of <a href=\"#schema-Voucher\">Voucher</a></td>",
        "<td>string or null</td><td><p>Yours.</p>",
        "<td>string (date-time)</td>",
        "<td><code>parent</code></td><td><a href=\"#schema-Order\">Order</a></td>",
        "<td>409</td><td><a href=\"#schema-Error\">Error</a></td><td><p><code>SOLD_OUT</code>: all &lt;gone&gt;.</p>",
        "&quot;expiry&quot;: &quot;&lt;b&gt;&quot;",
        "<a href=\"#schema-Voucher\">Voucher</a> or null</td><td><p>The best.</p>",
        "<h3 id=\"schema-Order\">",
        "<p>An &lt;order&gt;.</p>",
        "always <code>X</code>",
        "<code>X-API-Secret</code>",
    ] {
        assert!(page.contains(expected), "{expected}\n\nis not in\n\n{page}");
    }
    for foreign in ["<b>", "<API>", "<order>", "<gone>", ">unused<"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn empty_document_renders_an_empty_page() {
    let page = page(&json!({})).into_string();
    assert!(page.contains("<h1") && !page.contains("<table"));
}
