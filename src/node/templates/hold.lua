-- While no API server is ready, a connection waits here instead of being refused. So programs that
-- start together with the API (kubelet, kube-proxy, flanneld, controller manager, scheduler) continue
-- as soon as it is ready, not after their own retry delay, which grows with every refusal. At the end
-- of the wait they get an HTTP 503: clients retry a closed connection ten times before anything else.
-- For the controller manager and the scheduler ("own") that is wanted: without an answer to their
-- first request they exit, and their restart is delayed.
--
-- A kubelet with pods of an earlier run asks for its Node before it starts static pods, and the API
-- server is one of them. So on a control-plane node ("beside") such a kubelet waits only one second:
-- otherwise kubelet and API server would wait for each other.
local pods = io.open("/var/lib/kubelet/pods")
local lived = pods ~= nil
if pods then
        pods:close()
end

-- A server that has not been checked yet is listed as up: it does not count.
local function up(servers)
        for _, server in pairs(core.backends[servers].servers) do
                local s = server:get_stats()
                if s.status:find("^UP") and not (s.check_status or ""):find("INI") then
                        return true
                end
        end
        return false
end

-- "own" is one of the API servers and has the same checks.
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

-- For keepalived: whether the API server of this node is ready.
core.register_service("ready", "tcp", function(applet)
        applet:send(up("vip") and "yes\n" or "no\n")
end)
