-- While no API server is ready, a connection waits here instead of being refused. So what starts together with the API (kubelet, kube-proxy,
-- flanneld, controller manager, scheduler) goes on the moment it answers, and not when a timer of its own, which grew while it was refused,
-- comes round again. At last it is told no, in words: who is only hung up on asks the same ten times again before it does anything else.
-- The controller manager and the scheduler ("own") should: without an answer to their first question they end, and what ended starts late.
--
-- A kubelet that finds pods of before asks for its Node before it starts the pods that are files. The API server is one of those: "beside" one,
-- a kubelet that has lived waits a second and no longer, or it would wait for what waits for it.
local pods = io.open("/var/lib/kubelet/pods")
local lived = pods ~= nil
if pods then
        pods:close()
end

-- A server that was not checked yet counts as up: that is no word of it.
local function up(servers)
        for _, server in pairs(core.backends[servers].servers) do
                local s = server:get_stats()
                if s.status:find("^UP") and not (s.check_status or ""):find("INI") then
                        return true
                end
        end
        return false
end

-- "own" is one of the API servers, and goes by the same checks.
local function ready(txn, servers)
        return txn.f:nbsrv(servers) > 0 and up("apiservers")
end

local function now()
        local t = core.now()
        return t.sec + t.usec / 1000000
end

core.register_action("hold", { "tcp-req" }, function(txn, servers, where)
        local last = now() + (where == "beside" and lived and 1 or 8)
        repeat
                if ready(txn, servers) then
                        lived = true
                        return
                end
                core.msleep(50)
        until now() > last
        if servers ~= "own" then
                txn.res:send("HTTP/1.0 503 no API server is ready\r\n\r\n")
        end
        txn:done()
end, 2)

-- For keepalived: whether the API server beside it is ready.
core.register_service("ready", "tcp", function(applet)
        applet:send(up("vip") and "yes\n" or "no\n")
end)
