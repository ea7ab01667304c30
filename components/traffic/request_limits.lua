-- Ends a gRPC message that is declared longer than the host allows, as it arrives and without holding any of it.
-- A message is 1 byte (compressed or not), 4 bytes (its length), then the message; a stream has many.
local HEAD = 5
-- A message that cannot be parsed, in place of the one that is too long: the server ends the call at once.
local BROKEN = "\0\0\0\0\1\255"
-- Paths of a server over HTTP; what else the gateway serves has limits of its own.
local TRITON = "/v2"
local STATE = "inference.request-limits"
local RESOURCE_EXHAUSTED, UNIMPLEMENTED = "8", "12"

local function is_grpc(headers)
  return (headers:get("content-type") or ""):find("application/grpc", 1, true) == 1
end

local function limit_messages(handle, limit)
  local left, held, refused = 0, "", false
  for chunk in handle:bodyChunks() do
    local size = chunk:length()
    if refused then
      chunk:setBytes("")
    elseif size <= left then
      left = left - size
    else
      local data, at = held .. chunk:getBytes(0, size), left + 1
      held = ""
      while at <= #data and not refused do
        if #data - at + 1 < HEAD then
          held, data = data:sub(at), data:sub(1, at - 1)
        else
          local _, a, b, c, d = data:byte(at, at + HEAD - 1)
          local length = ((a * 256 + b) * 256 + c) * 256 + d
          refused = length > limit
          if refused then
            data = data:sub(1, at - 1) .. BROKEN
          end
          at = at + HEAD + length
        end
      end
      left = at - 1 - #data
      chunk:setBytes(data)
      if refused then
        handle:streamInfo():dynamicMetadata():set(STATE, "limit", limit)
      end
    end
  end
end

function envoy_on_request(handle)
  local headers = handle:headers()
  if is_grpc(headers) then
    -- What a compressed message grows to nobody knows before the server has unpacked it.
    if (headers:get("grpc-encoding") or "identity") ~= "identity" then
      handle:respond({
        [":status"] = "200", ["content-type"] = "application/grpc",
        ["grpc-status"] = UNIMPLEMENTED, ["grpc-message"] = "send messages uncompressed",
      }, "")
    else
      limit_messages(handle, handle:filterContext():get("maxBytes") or 0)
    end
  elseif headers:get("content-length") == nil and headers:get(":path"):find(TRITON, 1, true) == 1 then
    -- A body in spite of no length; the routes refuse POSTs of that kind.
    for chunk in handle:bodyChunks() do
      chunk:setBytes("")
    end
  end
end

function envoy_on_response(handle)
  if not is_grpc(handle:headers()) then
    return
  end
  local trailers = handle:trailers() or handle:headers()
  local state = handle:streamInfo():dynamicMetadata():get(STATE)
  if state ~= nil then
    trailers:replace("grpc-status", RESOURCE_EXHAUSTED)
    trailers:replace("grpc-message", string.format("a message is limited to %d bytes", state["limit"]))
  end
end
