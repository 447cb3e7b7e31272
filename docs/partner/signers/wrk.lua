-- Requests for wrk with the headers of a file. With a body they are POSTs, each with an Idempotency-Key of its own.
--
--   wrk -s wrk.lua URL -- HEADERS [BODY]
--
-- The headers are lines like those of partner.headers and of the signers. A signature is valid for 300 seconds and for every
-- request with this method, path and body: sign before each run, and end the run before 300 seconds are over.

local threads = {}

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local function random_hex(length)
  local file = assert(io.open("/dev/urandom", "rb"))
  local bytes = file:read(length)
  file:close()
  return (bytes:gsub(".", function(byte) return string.format("%02x", byte:byte()) end))
end

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  sent, statuses = 0, {}
  for name, value in read(arguments[1]):gmatch("([%w-]+): *([^\r\n]+)") do
    wrk.headers[name] = value
  end
  if arguments[2] then
    wrk.method, wrk.body, key = "POST", read(arguments[2]), random_hex(12)
    wrk.headers["Content-Type"] = "application/json"
  end
end

function request()
  if key then
    sent = sent + 1
    wrk.headers["Idempotency-Key"] = key .. "-" .. sent
  end
  return wrk.format()
end

function response(status)
  statuses[status] = (statuses[status] or 0) + 1
end

function done()
  local total = {}
  for _, thread in ipairs(threads) do
    for status, count in pairs(thread:get("statuses")) do
      total[status] = (total[status] or 0) + count
    end
  end
  for status, count in pairs(total) do
    print("HTTP " .. status .. ": " .. count)
  end
end
