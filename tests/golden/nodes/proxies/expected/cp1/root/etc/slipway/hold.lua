-- While no API server is ready, a connection waits here instead of being refused. So what starts together with the API (kubelet, kube-proxy,
-- flanneld, controller manager, scheduler) goes on the moment it answers, and not when a timer of its own, which grew while it was refused,
-- comes round again.
core.register_action("hold", { "tcp-req" }, function(txn, servers)
        for _ = 1, 160 do
                if txn.f:nbsrv(servers) > 0 then
                        return
                end
                core.msleep(50)
        end
end, 1)
